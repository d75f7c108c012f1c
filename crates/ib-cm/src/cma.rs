//! The private data of REQ and `SIDR_REQ`: the header of `rdma_cm`, and what the consumer says.

use ib_wire::mad::cm::CmaHeader;

use crate::error::CmError;

/// Returns private data behind the header, if any, padded to the length of the message.
///
/// # Errors
/// Fails when it does not fit, or when the header has addresses of different versions of IP.
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

/// Returns the header, when there has to be one, and what is the consumer's; `None` when the header
/// is not legal.
pub(crate) fn decompose(has_header: bool, data: &[u8]) -> Option<(Option<CmaHeader>, Vec<u8>)> {
    if !has_header {
        return Some((None, data.to_vec()));
    }
    let (header, rest) = data.split_first_chunk()?;
    Some((Some(CmaHeader::parse(header)?), rest.to_vec()))
}
