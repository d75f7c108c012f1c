//! Private data of REQ and `SIDR_REQ`, which consists of the `rdma_cm` header and the data of the consumer.

use ib_wire::mad::cm::CmaHeader;

use crate::error::CmError;

/// Encodes private data: the `rdma_cm` header, if any, followed by the data of the consumer and zeros.
///
/// # Errors
/// Fails if the data is too long, or if the header has both an IPv4 and an IPv6 address.
pub(crate) fn compose<const N: usize>(
    message: &'static str,
    header: Option<&CmaHeader>,
    data: &[u8],
) -> Result<[u8; N], CmError> {
    let bytes = |header: &CmaHeader| header.to_bytes().ok_or(CmError::MixedFamilies);
    let header = header.map(bytes).transpose()?;
    let head = header.as_ref().map_or(&[][..], |bytes| &bytes[..]);
    let limit = N - head.len();
    if data.len() > limit {
        return Err(CmError::PrivateDataTooLong { message, length: data.len(), limit });
    }
    let mut all = [0; N];
    let (before, after) = all.split_at_mut(head.len());
    before.copy_from_slice(head);
    after[..data.len()].copy_from_slice(data);
    Ok(all)
}

/// Splits private data into the `rdma_cm` header, if `has_header` is true, and the data of the consumer.
///
/// Returns `None` if the header is invalid.
pub(crate) fn decompose(has_header: bool, data: &[u8]) -> Option<(Option<CmaHeader>, Vec<u8>)> {
    if !has_header {
        return Some((None, data.to_vec()));
    }
    let (header, rest) = data.split_first_chunk()?;
    Some((Some(CmaHeader::parse(header)?), rest.to_vec()))
}
