//! The list of test cases.

use super::Choice::{
    ComputeNodes, ConnectRoots, EnhancedPort0, FileMatrix, FileTables, Ids, IgnorePorts, IoNodes,
    KnownLids, ListedUnscattered, PortOrder, QuasiIndexing, Roots, RootsByHost, RoutingOrder,
    Scatter, Shift, SmOnLastHost, SmOnSwitch, SwitchTargets, Weights,
};
use super::{Case, Choice, Recipe};

const fn whole(kind: &'static str) -> Recipe {
    Recipe { kind, drop_links: 0.0, drop_switches: 0.0, seed: 0 }
}

const fn degraded(kind: &'static str, links: f64, switches: f64, seed: u64) -> Recipe {
    Recipe { kind, drop_links: links, drop_switches: switches, seed }
}

const TREE: Recipe = whole("xgft 6,6 1,6");
const TREE3: Recipe = whole("xgft 4,4,6 1,4,4");
const OVERSUBSCRIBED: Recipe = whole("fat-tree 24 oversubscription=2:1 parallel=2");
const PARALLEL3: Recipe = whole("xgft 3,4,4 1,2,2 1,2,1");
const KARY: Recipe = whole("k-ary-n-tree 3 4");
const TORUS: Recipe = whole("torus 4x4x4 hosts=2");
const TORUS2: Recipe = whole("torus 6x6 hosts=3");
const MESH: Recipe = whole("mesh 5x4x3 hosts=2");
const CUBE: Recipe = whole("hypercube 6 hosts=2");
const DRAGONFLY: Recipe = whole("dragonfly a=4 p=2 h=2");
const RANDOM: Recipe = degraded("random switches=40 ports=16 hosts=4", 0.0, 0.0, 5);
const HURT_TREE: Recipe = degraded("xgft 6,6 1,6", 0.15, 0.0, 3);
const HURT_TREE3: Recipe = degraded("xgft 4,4,6 1,4,4", 0.1, 0.08, 4);
const HURT_TORUS: Recipe = degraded("torus 4x4x4 hosts=2", 0.1, 0.05, 9);
const HURT_CUBE: Recipe = degraded("hypercube 6 hosts=2", 0.12, 0.0, 11);
const LARGE: Recipe = whole("xgft 9,9,18 1,9,9");
const HURT_LARGE: Recipe = degraded("xgft 9,9,18 1,9,9", 0.03, 0.01, 2);

/// Returns all test cases, always in the same order.
#[must_use]
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |recipe, engine, lmc, choices: &[Choice]| {
        cases.push(Case { recipe, engine, lmc, choices: choices.to_vec() });
    };

    for recipe in [TREE, TREE3, OVERSUBSCRIBED, TORUS, CUBE, RANDOM, HURT_TREE3, HURT_TORUS] {
        add(recipe, "minhop", 0, &[]);
    }
    add(LARGE, "minhop", 0, &[]);
    add(HURT_LARGE, "minhop", 0, &[]);
    for lmc in [1, 2, 3, 7] {
        add(TREE, "minhop", lmc, &[]);
    }
    add(OVERSUBSCRIBED, "minhop", 2, &[]);
    add(RANDOM, "minhop", 2, &[]);
    add(HURT_TREE3, "minhop", 1, &[]);
    add(HURT_TORUS, "minhop", 3, &[]);
    add(DRAGONFLY, "minhop", 1, &[]);
    for choice in [IgnorePorts, RoutingOrder, PortOrder, Weights, Shift, Scatter] {
        add(TREE3, "minhop", 0, &[choice]);
    }
    for choice in [IgnorePorts, RoutingOrder, PortOrder, Weights, Shift, Scatter] {
        add(RANDOM, "minhop", 2, &[choice]);
    }

    for recipe in [TREE, TREE3, OVERSUBSCRIBED, KARY, PARALLEL3] {
        add(recipe, "updn", 0, &[]);
    }
    add(LARGE, "updn", 0, &[]);
    add(HURT_LARGE, "updn", 0, &[Roots]);
    for recipe in [HURT_TREE, HURT_TREE3, TORUS, MESH, DRAGONFLY, RANDOM, HURT_TORUS] {
        add(recipe, "updn", 0, &[Roots]);
    }
    add(TREE3, "updn", 2, &[]);
    add(HURT_TREE3, "updn", 3, &[Roots]);
    add(RANDOM, "updn", 1, &[Roots, Ids]);
    add(MESH, "updn", 0, &[RootsByHost]);
    add(TREE3, "updn", 0, &[Roots, ConnectRoots]);
    add(HURT_TREE3, "updn", 0, &[Roots, ConnectRoots]);
    add(TREE, "updn", 1, &[ConnectRoots]);
    add(RANDOM, "updn", 0, &[Roots, Weights, ConnectRoots]);
    add(TORUS, "updn", 0, &[]);
    add(HURT_CUBE, "updn,dor", 0, &[]);

    for recipe in [MESH, CUBE, TORUS, TORUS2, HURT_CUBE, HURT_TORUS, OVERSUBSCRIBED] {
        add(recipe, "dor", 0, &[]);
    }
    add(MESH, "dor", 1, &[]);
    add(CUBE, "dor", 3, &[]);
    add(OVERSUBSCRIBED, "dor", 2, &[]);
    add(MESH, "dor", 0, &[PortOrder]);
    add(OVERSUBSCRIBED, "dor", 0, &[IgnorePorts]);

    for recipe in [TREE, TREE3, OVERSUBSCRIBED, PARALLEL3, KARY, LARGE] {
        add(recipe, "ftree", 0, &[]);
    }
    for recipe in [HURT_TREE, HURT_TREE3, HURT_LARGE, OVERSUBSCRIBED] {
        add(recipe, "ftree", 0, &[Roots]);
    }
    add(TREE3, "ftree", 0, &[ComputeNodes]);
    add(TREE3, "ftree", 0, &[Roots, ComputeNodes, IoNodes]);
    add(HURT_TREE3, "ftree", 0, &[Roots, ComputeNodes]);
    add(TREE3, "ftree", 0, &[Roots, ConnectRoots]);
    add(TREE, "ftree", 1, &[]);
    add(HURT_TREE3, "ftree", 0, &[]);
    add(TORUS, "ftree,updn", 0, &[]);
    add(TORUS, "ftree,dor", 1, &[]);
    add(HURT_TREE3, "ftree", 0, &[Roots, QuasiIndexing]);

    for engine in ["minhop", "updn", "ftree"] {
        add(TREE3, engine, 0, &[SmOnSwitch]);
        add(TREE3, engine, 0, &[SmOnLastHost]);
        add(TREE3, engine, 0, &[KnownLids]);
    }
    add(RANDOM, "minhop", 2, &[SmOnSwitch, KnownLids]);
    add(HURT_TORUS, "minhop", 1, &[EnhancedPort0]);
    add(TREE3, "updn", 2, &[EnhancedPort0]);
    add(TREE3, "minhop", 0, &[SwitchTargets]);
    add(MESH, "dor", 1, &[SwitchTargets]);
    add(RANDOM, "minhop", 0, &[ListedUnscattered]);
    add(TREE3, "file", 0, &[FileTables]);
    add(TREE3, "file", 0, &[FileTables, FileMatrix]);
    add(OVERSUBSCRIBED, "file", 0, &[FileMatrix]);
    cases
}

/// Returns the fabrics on which ibfabric's lash engine must not use more layers than OpenSM's.
#[must_use]
pub fn layered() -> Vec<Recipe> {
    let torus = "torus 6x6x6 hosts=1";
    vec![
        whole("torus 5x5"),
        TORUS2,
        whole("torus 9x9"),
        TORUS,
        whole("torus 5x5x5"),
        whole(torus),
        degraded(torus, 0.05, 0.0, 1),
        HURT_TORUS,
        MESH,
        CUBE,
        whole("hypercube 7"),
        HURT_CUBE,
        DRAGONFLY,
        whole("dragonfly a=6 p=1 h=3"),
        RANDOM,
        whole("random switches=120 ports=8 hosts=2"),
        degraded("random switches=90 ports=12 hosts=4", 0.1, 0.0, 3),
        TREE3,
        HURT_TREE3,
    ]
}
