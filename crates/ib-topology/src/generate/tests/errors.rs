//! Tests of the exact texts of errors.

use super::*;

#[test]
fn errors_say_what_was_found_and_expected() {
    let errors = [
        "ring 4",
        "torus",
        "torus 4x4 5",
        "torus 4x4 host=5",
        "torus 4x4 hosts=5 hosts=6",
        "torus 4x-4",
        "torus 4x",
        "torus 4x99999999999",
        "torus 4x0",
        "torus 4x4 hosts=0",
        "torus 4x4 hosts=251",
        "torus 300x300",
        "torus 49151x49151x49151x49151x49151x49151",
        "hypercube 15",
        "hypercube 14 hosts=3",
        "xgft 4,4",
        "xgft 4,4 1",
        "xgft 4,4 1,2 1,2,3",
        "xgft 4,0 1,2",
        "xgft 4,4 1,255",
        "xgft 200,4 1,100",
        "xgft 200,200,200 1,1,1",
        "fat-tree",
        "fat-tree 1",
        "fat-tree 36 4",
        "fat-tree 36 2 pods=3",
        "fat-tree 36 oversubscription=2",
        "fat-tree 36 oversubscription=2:0",
        "fat-tree 36 parallel=1,2,3",
        "fat-tree 36 hosts=12 spines=8 oversubscription=2:1",
        "fat-tree 36 hosts=24 spines=13",
        "fat-tree 36 hosts=11 oversubscription=2:1",
        "fat-tree 36 parallel=1,2",
        "fat-tree 36 parallel=37",
        "fat-tree 36 parallel=20",
        "fat-tree 36 leaves=37",
        "fat-tree 36 3 parallel=2 pods=19",
        "fat-tree 36 3 cores=20",
        "fat-tree 36 3 leaves=36",
        "fat-tree 64 3",
        "k-ary-n-tree 128 1",
        "k-ary-n-tree 1 3",
        "k-ary-n-tree 2 13",
        "k-ary-n-tree 16 4",
        "dragonfly a=4 p=2",
        "dragonfly a=4 p=2 h=2 g=10",
        "dragonfly a=4 p=2 h=2 g=1",
        "dragonfly a=4 p=2 h=2 8",
        "dragonfly a=100 p=100 h=100",
        "dragonfly a=32 p=8 h=16",
        "random ports=8",
        "random switches=0 ports=8",
        "random switches=8 ports=8 hosts=9",
        "random switches=8 ports=8 hosts=7",
        "random switches=2 ports=8 hosts=8",
        "random switches=8 ports=8 hosts=2 links=25",
        "random switches=8 ports=8 hosts=2 links=6",
    ];
    let texts: Vec<String> = errors.map(|words| format!("{words}\n  {}", error(words))).into();
    insta::assert_snapshot!(texts.join("\n"), @r#"
    ring 4
      `ring` is not a kind of fabric: expected one of fat-tree, xgft, k-ary-n-tree, torus, mesh, hypercube, dragonfly, random
    torus
      X1xX2x..xXd is missing: expected `torus X1xX2x..xXd [hosts=N]`
    torus 4x4 5
      `5` is one argument too many: expected `torus X1xX2x..xXd [hosts=N]`
    torus 4x4 host=5
      `host=` is not an argument of this kind of fabric: expected `torus X1xX2x..xXd [hosts=N]`
    torus 4x4 hosts=5 hosts=6
      `hosts=` is used twice: expected it once
    torus 4x-4
      `4x-4` is not a valid X1xX2x..xXd: expected decimal numbers below 2^32 with `x` between them
    torus 4x
      `4x` is not a valid X1xX2x..xXd: expected decimal numbers below 2^32 with `x` between them
    torus 4x99999999999
      `4x99999999999` is not a valid X1xX2x..xXd: expected decimal numbers below 2^32 with `x` between them
    torus 4x0
      side X2 is 0: expected 1 to 49151
    torus 4x4 hosts=0
      hosts is 0: expected 1 to 254
    torus 4x4 hosts=251
      a switch of this fabric needs 255 ports: expected at most 254
    torus 300x300
      the fabric needs 180000 LIDs (90000 host ports and 90000 switches): expected at most 49151
    torus 49151x49151x49151x49151x49151x49151
      the fabric needs 2^64 or more LIDs (2^64 or more host ports and 2^64 or more switches): expected at most 49151
    hypercube 15
      D is 15: expected 1 to 14
    hypercube 14 hosts=3
      the fabric needs 65536 LIDs (49152 host ports and 16384 switches): expected at most 49151
    xgft 4,4
      W1,W2,..,Wh is missing: expected `xgft M1,M2,..,Mh W1,W2,..,Wh [P1,P2,..,Ph]`
    xgft 4,4 1
      the list W1,..,Wh has length 1: expected 2, one number for each level
    xgft 4,4 1,2 1,2,3
      the list P1,..,Ph has length 3: expected 2, one number for each level
    xgft 4,0 1,2
      M2 is 0: expected 1 to 254
    xgft 4,4 1,255
      W2 is 255: expected 1 to 254
    xgft 200,4 1,100
      a switch of this fabric needs 300 ports: expected at most 254
    xgft 200,200,200 1,1,1
      the fabric needs 8040201 LIDs (8000000 host ports and 40201 switches): expected at most 49151
    fat-tree
      RADIX is missing: expected `fat-tree RADIX [LEVELS] [oversubscription=D:U] [parallel=P[,Q]] [hosts=N] [leaves=N] [spines=N] [pods=N] [cores=N]`
    fat-tree 1
      RADIX is 1: expected 2 to 254
    fat-tree 36 4
      LEVELS is 4: expected 2 to 3
    fat-tree 36 2 pods=3
      pods is set with 2 levels: expected 3 levels
    fat-tree 36 oversubscription=2
      `2` is not a valid oversubscription=D:U: expected two numbers with `:` between them
    fat-tree 36 oversubscription=2:0
      U of oversubscription=D:U is 0: expected 1 to 254
    fat-tree 36 parallel=1,2,3
      `1,2,3` is not a valid parallel=P,Q: expected one number, or two with `,` between them
    fat-tree 36 hosts=12 spines=8 oversubscription=2:1
      a leaf would have 12 hosts and 8 uplinks: expected some of each at 2:1, uplinks in bundles of 1, 36 ports in all
    fat-tree 36 hosts=24 spines=13
      a leaf would have 24 hosts and 13 uplinks: expected some of each, uplinks in bundles of 1, 36 ports in all
    fat-tree 36 hosts=11 oversubscription=2:1
      a leaf would have 11 hosts and 5 uplinks: expected some of each at 2:1, uplinks in bundles of 1, 36 ports in all
    fat-tree 36 parallel=1,2
      Q of parallel=P,Q is set with 2 levels: expected 3 levels
    fat-tree 36 parallel=37
      P of parallel=P,Q is 37: expected 1 to 36
    fat-tree 36 parallel=20
      a leaf would have 0 hosts and 0 uplinks: expected some of each, uplinks in bundles of 20, 36 ports in all
    fat-tree 36 leaves=37
      leaves is 37: expected 1 to 36
    fat-tree 36 3 parallel=2 pods=19
      pods is 19: expected 1 to 18
    fat-tree 36 3 cores=20
      cores=20 with 18 spines per pod: expected a multiple of the spines per pod
    fat-tree 36 3 leaves=36
      a spine would have 36 leaves of 1 links and 0 cores of 1 links: expected some of each, 36 ports in all
    fat-tree 64 3
      the fabric needs 70656 LIDs (65536 host ports and 5120 switches): expected at most 49151
    k-ary-n-tree 128 1
      K is 128: expected 2 to 127
    k-ary-n-tree 1 3
      K is 1: expected 2 to 127
    k-ary-n-tree 2 13
      N is 13: expected 1 to 12
    k-ary-n-tree 16 4
      the fabric needs 81920 LIDs (65536 host ports and 16384 switches): expected at most 49151
    dragonfly a=4 p=2
      h is missing: expected `dragonfly a=A p=P h=H [g=G]`
    dragonfly a=4 p=2 h=2 g=10
      g is 10: expected 2 to 9
    dragonfly a=4 p=2 h=2 g=1
      g is 1: expected 2 to 9
    dragonfly a=4 p=2 h=2 8
      `8` is one argument too many: expected `dragonfly a=A p=P h=H [g=G]`
    dragonfly a=100 p=100 h=100
      a switch of this fabric needs 299 ports: expected at most 254
    dragonfly a=32 p=8 h=16
      the fabric needs 147744 LIDs (131328 host ports and 16416 switches): expected at most 49151
    random ports=8
      switches is missing: expected `random switches=S ports=N [hosts=H] [links=L]`
    random switches=0 ports=8
      switches is 0: expected 1 to 49151
    random switches=8 ports=8 hosts=9
      hosts is 9: expected 1 to 8
    random switches=8 ports=8 hosts=7
      8 switches, each with 1 ports without a host: expected at least 2 ports for links
    random switches=2 ports=8 hosts=8
      2 switches, each with 0 ports without a host: expected at least 1 ports for links
    random switches=8 ports=8 hosts=2 links=25
      links is 25: expected 7 to 24
    random switches=8 ports=8 hosts=2 links=6
      links is 6: expected 7 to 24
    "#);
}

#[test]
fn fractions_outside_0_to_1_are_refused() {
    let fraction = |drop_links, drop_switches| {
        let options = Options { drop_links, drop_switches, ..Options::default() };
        generate(&parsed("torus 4x4"), &options).expect_err("invalid fraction").to_string()
    };
    assert_eq!(fraction(-0.1, 0.0), "the fraction of links to drop is -0.1: expected 0 to 1");
    assert_eq!(fraction(0.0, f64::NAN), "the fraction of switches to drop is NaN: expected 0 to 1");
    assert_eq!(
        fraction(0.0, 1.0),
        "no host is left when 16 of 16 switches are dropped: expected to drop fewer"
    );
}
