//! Numbers of the objects of an HCA.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub(crate) u32);
    };
}

id!(/// Number of a protection domain. Queue pairs use only regions and address handles of their own protection domain.
    PdId);
id!(/// Number of a memory region, 24 bits: the upper three bytes of its keys.
    MrId);
id!(/// Number of a memory window, 24 bits: the upper three bytes of its R_Key.
    MwId);
id!(/// Number of a completion queue.
    CqId);
id!(/// Number of a shared receive queue.
    SrqId);
id!(/// Number of an address handle.
    AhId);
id!(/// Number of a queue pair within its HCA. Packets carry the queue pair's [`Qpn`](ib_types::Qpn) instead.
    QpId);
