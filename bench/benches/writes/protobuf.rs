//! As much of Kubernetes' protobuf as it takes to make an object from another one: `k8s\0`, a message with the object in its second field,
//! and in the object the metadata in the first. Knows no kind.

use anyhow::{Context, Result, bail, ensure};

const MAGIC: &[u8] = b"k8s\0";

/// The field of the envelope with the object.
const OBJECT: u64 = 2;

/// The field of an object with its metadata.
const METADATA: u64 = 1;

/// The field of an object with its spec.
const SPEC: u64 = 2;

/// The fields of the metadata that only the API server writes: UID, resource version, generation, time of creation, owners of fields.
const OF_SERVER: [u64; 5] = [5, 6, 7, 8, 17];

/// The form of a field's value that is bytes of a length that is told.
const BYTES: u64 = 2;

/// An object as it was before it was created. `allocated` are the fields of its spec that the API server chooses for each object.
pub fn without_state(object: &[u8], allocated: &[u64]) -> Result<Vec<u8>> {
    let envelope = object.strip_prefix(MAGIC).context("no protobuf of Kubernetes")?;
    let stripped = rewritten(envelope, OBJECT, |object| {
        let object = rewritten(object, METADATA, |metadata| without(metadata, &OF_SERVER))?;
        rewritten(&object, SPEC, |spec| without(spec, allocated))
    })?;
    Ok([MAGIC, &stripped].concat())
}

/// Puts a text in the place of another one of the same length, wherever it is.
pub fn replaced(object: &[u8], old: &[u8], new: &[u8]) -> Result<Vec<u8>> {
    ensure!(old.len() == new.len(), "texts of different lengths: {} and {}", old.len(), new.len());
    let (mut bytes, mut found) = (object.to_vec(), false);
    for start in 0..=bytes.len().saturating_sub(old.len()) {
        if let Some(place) = bytes.get_mut(start..start + old.len()).filter(|place| *place == old) {
            place.copy_from_slice(new);
            found = true;
        }
    }
    ensure!(found, "nothing to replace");
    Ok(bytes)
}

struct Field<'b> {
    number: u64,
    whole: &'b [u8],
    value: &'b [u8],
}

/// A message with one of its fields rewritten.
fn rewritten(message: &[u8], number: u64, rewrite: impl Fn(&[u8]) -> Result<Vec<u8>>) -> Result<Vec<u8>> {
    let mut written = Vec::new();
    for field in fields(message)? {
        if field.number != number {
            written.extend_from_slice(field.whole);
            continue;
        }
        let value = rewrite(field.value)?;
        write_number(&mut written, number << 3 | BYTES);
        write_number(&mut written, value.len() as u64);
        written.extend(value);
    }
    Ok(written)
}

fn without(message: &[u8], numbers: &[u64]) -> Result<Vec<u8>> {
    let kept = fields(message)?.into_iter().filter(|field| !numbers.contains(&field.number));
    Ok(kept.flat_map(|field| field.whole.to_vec()).collect())
}

fn fields(message: &[u8]) -> Result<Vec<Field<'_>>> {
    let (mut rest, mut found) = (message, Vec::new());
    while !rest.is_empty() {
        let (key, after) = read_number(rest)?;
        let (value, next) = match key & 7 {
            0 => (&after[..0], read_number(after)?.1),
            BYTES => {
                let (length, after) = read_number(after)?;
                after.split_at_checked(usize::try_from(length)?).context("a value that is cut off")?
            }
            other => bail!("a value of the form {other}, which no object here has"),
        };
        let whole = &rest[..rest.len() - next.len()];
        found.push(Field { number: key >> 3, whole, value });
        rest = next;
    }
    Ok(found)
}

fn read_number(bytes: &[u8]) -> Result<(u64, &[u8])> {
    let mut number = 0;
    for (place, byte) in bytes.iter().enumerate().take(10) {
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Ok((number, &bytes[place + 1..]));
        }
    }
    bail!("a number that is cut off")
}

fn write_number(into: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}
