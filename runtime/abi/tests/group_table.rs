//! The group table against a map: random keys of every kind, long and short strings, NULLs, growth, merge, eviction.

use std::collections::HashMap;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use ssql_abi::{ColumnView, GroupTable, KeyKind, RowLayout, StringView, hash_columns};

type Key = Vec<Option<Vec<u8>>>;

/// A batch's key columns, owned.
struct Columns {
    values: Vec<Vec<u8>>,
    validity: Vec<Option<Vec<u8>>>,
    heaps: Vec<Vec<u8>>,
    heap_pointers: Vec<[*const u8; 1]>,
    bit: u64,
}

impl Columns {
    /// Lays the keys out as columns; bitmaps start at `bit`.
    fn new(kinds: &[KeyKind], keys: &[Key], bit: u64) -> Columns {
        let mut columns = Columns { values: vec![], validity: vec![], heaps: vec![], heap_pointers: vec![], bit };
        for (k, kind) in kinds.iter().enumerate() {
            let bitmap_bytes = (bit as usize + keys.len()).div_ceil(8).max(1);
            let (mut values, mut validity, mut heap) = (vec![], vec![0u8; bitmap_bytes], vec![]);
            if *kind == KeyKind::Bit {
                values = vec![0; bitmap_bytes];
            }
            let mut nulls = false;
            for (row, key) in keys.iter().enumerate() {
                let at = bit as usize + row;
                match &key[k] {
                    Some(_) => validity[at / 8] |= 1 << (at % 8),
                    None => nulls = true,
                }
                match (kind, &key[k]) {
                    (KeyKind::Bit, value) => {
                        if value.as_ref().is_some_and(|v| v[0] == 1) {
                            values[at / 8] |= 1 << (at % 8);
                        }
                    }
                    (KeyKind::Bytes, value) => {
                        let bytes = value.as_deref().unwrap_or(b"what stands under a NULL means nothing");
                        let view = StringView::new(bytes, (heap.len() as u64) << 32);
                        values.extend(view.head.to_le_bytes().into_iter().chain(view.tail.to_le_bytes()));
                        heap.extend_from_slice(bytes);
                    }
                    (kind, value) => match value {
                        Some(bytes) => values.extend_from_slice(bytes),
                        None => values.extend(std::iter::repeat_n(0xAB, kind.width())),
                    },
                }
            }
            columns.values.push(values);
            columns.validity.push(nulls.then_some(validity));
            columns.heaps.push(heap);
        }
        columns.heap_pointers = columns.heaps.iter().map(|h| [h.as_ptr()]).collect();
        columns
    }

    fn views(&self) -> Vec<ColumnView> {
        (0..self.values.len())
            .map(|k| ColumnView {
                values: self.values[k].as_ptr(),
                validity: self.validity[k].as_ref().map_or(std::ptr::null(), |v| v.as_ptr()),
                buffers: self.heap_pointers[k].as_ptr(),
                values_bit: self.bit,
                validity_bit: self.bit,
            })
            .collect()
    }
}

fn random_field(rng: &mut StdRng, kind: KeyKind, spread: u64) -> Option<Vec<u8>> {
    if rng.random_ratio(1, 10) {
        return None;
    }
    let n = rng.random_range(0..spread);
    Some(match kind {
        KeyKind::Bit => vec![u8::from(n % 2 == 1)],
        KeyKind::Fixed(width) => (n as u128 * 0x1_0000_0001).to_le_bytes()[..width as usize].to_vec(),
        // Lengths on both sides of the inline limit, and strings that differ only behind the prefix.
        KeyKind::Bytes => format!("{:.*}{n}", rng.random_range(0..3) * 7, "prefix that is long").into_bytes(),
    })
}

fn random_kinds(rng: &mut StdRng) -> Vec<KeyKind> {
    let all = [
        KeyKind::Bit,
        KeyKind::Fixed(1),
        KeyKind::Fixed(2),
        KeyKind::Fixed(4),
        KeyKind::Fixed(8),
        KeyKind::Fixed(16),
        KeyKind::Bytes,
    ];
    (0..rng.random_range(0..4)).map(|_| all[rng.random_range(0..all.len())]).collect()
}

fn table(kinds: &[KeyKind]) -> GroupTable {
    let widths: Vec<usize> = kinds.iter().map(|k| k.width()).collect();
    GroupTable::new(RowLayout::new(&widths, &[16]), kinds.to_vec())
}

/// Adds one to the count of each row's group, in the table and in the model.
fn count(table: &mut GroupTable, model: &mut HashMap<Key, u64>, keys: &[Key], bit: u64) {
    let columns = Columns::new(table.kinds(), keys, bit);
    let (views, kinds) = (columns.views(), table.kinds().to_vec());
    let (mut hashes, mut groups) = (vec![7; 3], vec![0; keys.len()]);
    // SAFETY: the views are of `columns`, which outlives them and holds `keys.len()` rows of these kinds.
    unsafe {
        hash_columns(&views, &kinds, keys.len(), &mut hashes);
        table.find_or_insert(&views, &hashes, 0..keys.len(), &mut groups);
    }
    let at = table.layout().agg_offsets[0];
    for (key, group) in keys.iter().zip(groups) {
        *model.entry(key.clone()).or_default() += 1;
        let n = &mut table.row_mut(group)[at..at + 8];
        let next = u64::from_le_bytes(n.try_into().expect("8 bytes")) + 1;
        n.copy_from_slice(&next.to_le_bytes());
    }
}

fn contents(table: &GroupTable) -> HashMap<Key, u64> {
    let at = table.layout().agg_offsets[0];
    let rows = 0..table.len() as u32;
    let all: HashMap<Key, u64> = rows
        .map(|row| {
            let key = (0..table.kinds().len()).map(|k| table.key(row, k).map(<[u8]>::to_vec)).collect();
            (key, u64::from_le_bytes(table.row(row)[at..at + 8].try_into().expect("8 bytes")))
        })
        .collect();
    assert_eq!(all.len(), table.len(), "no key stands twice");
    all
}

fn rounds() -> u64 {
    if cfg!(miri) { 3 } else { 60 }
}

fn random_keys(rng: &mut StdRng, kinds: &[KeyKind], rows: usize, spread: u64) -> Vec<Key> {
    (0..rows).map(|_| kinds.iter().map(|&k| random_field(rng, k, spread)).collect()).collect()
}

#[test]
fn counts_as_a_map_does() {
    for seed in 0..rounds() {
        let mut rng = StdRng::seed_from_u64(seed);
        let kinds = random_kinds(&mut rng);
        let (mut table, mut model) = (table(&kinds), HashMap::new());
        for _ in 0..4 {
            let rows = rng.random_range(0..if cfg!(miri) { 40 } else { 2000 });
            let spread = [3, 100, 100_000][rng.random_range(0..3)];
            let keys = random_keys(&mut rng, &kinds, rows, spread);
            count(&mut table, &mut model, &keys, rng.random_range(0..9));
        }
        assert_eq!(contents(&table), model, "seed {seed}, kinds {kinds:?}");
        for key in model.keys() {
            let fields: Vec<Option<&[u8]>> = key.iter().map(|f| f.as_deref()).collect();
            let row = table.find_key(&fields).expect("every key is found by its bytes");
            assert_eq!(table.insert_key(&fields), (row, false));
        }
    }
}

#[test]
fn merge_finds_the_same_groups() {
    for seed in 0..rounds() {
        let mut rng = StdRng::seed_from_u64(seed);
        let kinds = random_kinds(&mut rng);
        let (mut a, mut b, mut model) = (table(&kinds), table(&kinds), HashMap::new());
        let rows = if cfg!(miri) { 30 } else { 700 };
        count(&mut a, &mut model, &random_keys(&mut rng, &kinds, rows, 300), 0);
        count(&mut b, &mut model, &random_keys(&mut rng, &kinds, rows, 300), 3);
        let mut groups = vec![];
        let rows: Vec<u32> = (0..b.len() as u32).collect();
        a.merge_keys(&b, &rows, &mut groups);
        let at = a.layout().agg_offsets[0];
        for (from, to) in groups.into_iter().enumerate() {
            let read = |row: &[u8]| u64::from_le_bytes(row[at..at + 8].try_into().expect("8 bytes"));
            let sum = read(a.row(to)) + read(b.row(from as u32));
            a.row_mut(to)[at..at + 8].copy_from_slice(&sum.to_le_bytes());
        }
        assert_eq!(contents(&a), model, "seed {seed}, kinds {kinds:?}");
    }
}

/// A table of keys without their first field, filled from one of whole keys, holds what it would hold had it taken the
/// rest of each key itself; and its keys are found from any other table of such keys.
#[test]
fn merge_without_the_first_field() {
    for seed in 0..rounds() {
        let mut rng = StdRng::seed_from_u64(seed);
        let kinds: Vec<KeyKind> = [KeyKind::Fixed(8)].into_iter().chain(random_kinds(&mut rng)).collect();
        let (mut whole, mut model) = (table(&kinds), HashMap::new());
        let keys = random_keys(&mut rng, &kinds, if cfg!(miri) { 30 } else { 400 }, 60);
        count(&mut whole, &mut model, &keys, 0);

        let (mut rest, mut places) = (table(&kinds[1..]), vec![]);
        let rows: Vec<u32> = (0..whole.len() as u32).collect();
        let hashes: Vec<u64> = rows.iter().map(|&row| whole.hash_of_rest(row, 1)).collect();
        rest.merge_rest_of_keys(&whole, &rows, &hashes, 1, &mut places);
        let (mut direct, mut counts) = (table(&kinds[1..]), HashMap::new());
        let rest_keys: Vec<Key> = keys.iter().map(|key| key[1..].to_vec()).collect();
        count(&mut direct, &mut counts, &rest_keys, 0);
        let keys_of = |t: &GroupTable| contents(t).into_keys().collect::<std::collections::HashSet<Key>>();
        assert_eq!(keys_of(&rest), keys_of(&direct), "seed {seed}, kinds {kinds:?}");
        for (from, &to) in places.iter().enumerate() {
            let field = |k: usize| (whole.key(from as u32, k + 1), rest.key(to, k));
            assert!((0..kinds.len() - 1).map(field).all(|(a, b)| a == b), "seed {seed}");
        }

        let (mut some, mut found) = (table(&kinds[1..]), vec![]);
        count(&mut some, &mut HashMap::new(), &rest_keys[..rest_keys.len() / 2], 0);
        some.find_keys(&rest, &mut found);
        assert_eq!(found.len(), some.len(), "seed {seed}");
        for (there, here) in found {
            assert_eq!(rest.hash(there), some.hash(here), "seed {seed}");
        }
    }
}

#[test]
fn retain_keeps_what_it_is_told() {
    for seed in 0..rounds() {
        let mut rng = StdRng::seed_from_u64(seed);
        let kinds = random_kinds(&mut rng);
        let (mut table, mut model) = (table(&kinds), HashMap::new());
        let rows = if cfg!(miri) { 40 } else { 1500 };
        count(&mut table, &mut model, &random_keys(&mut rng, &kinds, rows, 5000), 0);
        let limit = rng.random_range(0..4) * (u64::MAX / 3);
        let hashes: HashMap<Key, u64> = (0..table.len() as u32)
            .map(|r| ((0..kinds.len()).map(|k| table.key(r, k).map(<[u8]>::to_vec)).collect(), table.hash(r)))
            .collect();
        let before = table.len();
        let gone = table.retain(|t, row| t.hash(row) < limit);
        model.retain(|key, _| hashes[key] < limit);
        assert_eq!(before - gone, table.len());
        assert_eq!(contents(&table), model, "seed {seed}");
        count(&mut table, &mut model, &random_keys(&mut rng, &kinds, rows, 5000), 5);
        assert_eq!(contents(&table), model, "seed {seed}");
        table.clear();
        assert!(table.is_empty() && contents(&table).is_empty());
    }
}

#[test]
fn rows_show_as_bytes() {
    let mut table = table(&[KeyKind::Fixed(4)]);
    let (row, new) = table.insert_key(&[Some(&7u32.to_le_bytes())]);
    assert!(new);
    assert_eq!(table.key(row, 0), Some(&7u32.to_le_bytes()[..]));
    assert_eq!(table.insert_key(&[None]), (1, true));
    assert_eq!(table.key(1, 0), None);
    assert_eq!(table.rows().len(), 2);
    let (bytes, size) = table.bytes_mut();
    assert_eq!((bytes.len(), size), (80, 40));
    assert!(bytes[24..40].iter().all(|&b| b == 0), "a new row's aggregate words are zero");
    assert!(table.memory_bytes() >= 80 + 16 * 8);
}
