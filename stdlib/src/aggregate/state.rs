//! State rows, and the objects that do not fit into them.

use std::any::Any;
use std::fmt::Debug;

/// State that has no fixed size: a list, a set, a sketch, a string.
pub trait ObjectState: Any + Send + Sync + Debug {
    /// Bytes that it holds on the heap, roughly; what memory limits are measured by.
    fn heap_bytes(&self) -> usize;
    /// For [`Objects::get`].
    fn as_any(&self) -> &dyn Any;
    /// For [`Objects::get_mut`].
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

/// Implements [`ObjectState`] for a type, given how many bytes of it are on the heap.
#[macro_export]
macro_rules! object_state {
    ($type:ty, |$self:ident| $bytes:expr) => {
        impl $crate::aggregate::ObjectState for $type {
            fn heap_bytes(&self) -> usize {
                let $self = self;
                $bytes
            }
            fn as_any(&self) -> &dyn std::any::Any {
                self
            }
            fn as_any_mut(&mut self) -> &mut dyn std::any::Any {
                self
            }
        }
    };
}

/// The objects of one state table, by handle. Handle 0 is none, so that an all-zero row is a valid empty state.
#[derive(Debug, Default)]
pub struct Objects {
    slab: Vec<Option<Box<dyn ObjectState>>>,
    free: Vec<usize>,
}

impl Objects {
    /// No objects.
    pub fn new() -> Objects {
        Objects::default()
    }

    /// Keeps an object; its handle is never 0.
    pub fn insert(&mut self, object: Box<dyn ObjectState>) -> u64 {
        let index = match self.free.pop() {
            Some(index) => {
                self.slab[index] = Some(object);
                index
            }
            None => {
                self.slab.push(Some(object));
                self.slab.len() - 1
            }
        };
        index as u64 + 1
    }

    fn index(handle: u64) -> Option<usize> {
        usize::try_from(handle).ok()?.checked_sub(1)
    }

    /// The object of that handle, if it is there and of that type.
    pub fn get<T: ObjectState>(&self, handle: u64) -> Option<&T> {
        self.slab.get(Self::index(handle)?)?.as_deref()?.as_any().downcast_ref()
    }

    /// The object of that handle, to be changed, if it is there and of that type.
    pub fn get_mut<T: ObjectState>(&mut self, handle: u64) -> Option<&mut T> {
        self.slab.get_mut(Self::index(handle)?)?.as_deref_mut()?.as_any_mut().downcast_mut()
    }

    /// Lets go of an object and returns it.
    pub fn remove(&mut self, handle: u64) -> Option<Box<dyn ObjectState>> {
        let index = Self::index(handle)?;
        let object = self.slab.get_mut(index)?.take()?;
        self.free.push(index);
        Some(object)
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.slab.len() - self.free.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that all objects hold on the heap, roughly.
    pub fn heap_bytes(&self) -> usize {
        self.slab.iter().flatten().map(|o| o.heap_bytes()).sum()
    }
}

/// The state rows of a table as one aggregate sees them: its words begin at `offset` in each row.
#[derive(Debug)]
pub struct StateRows<'a> {
    /// All rows.
    pub bytes: &'a mut [u8],
    /// Bytes of one row, a multiple of 8.
    pub row_size: usize,
    /// Of this aggregate's state within a row, a multiple of 8.
    pub offset: usize,
    /// Objects of the table.
    pub objects: &'a mut Objects,
}

impl StateRows<'_> {
    /// From the first byte of this aggregate's state to the end of the row.
    #[inline]
    pub fn state(&self, row: u32) -> &[u8] {
        let start = row as usize * self.row_size;
        &self.bytes[start + self.offset..start + self.row_size]
    }

    /// As [`StateRows::state`], to be changed.
    #[inline]
    pub fn state_mut(&mut self, row: u32) -> &mut [u8] {
        let start = row as usize * self.row_size;
        &mut self.bytes[start + self.offset..start + self.row_size]
    }

    #[inline]
    fn at(&self, row: u32, word: usize) -> usize {
        row as usize * self.row_size + self.offset + word * 8
    }

    /// The word of that number as an integer.
    #[inline]
    pub fn i64(&self, row: u32, word: usize) -> i64 {
        let at = self.at(row, word);
        i64::from_le_bytes(self.bytes[at..at + 8].try_into().expect("eight bytes"))
    }

    /// Sets a word.
    #[inline]
    pub fn set_i64(&mut self, row: u32, word: usize, value: i64) {
        let at = self.at(row, word);
        self.bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    /// The word of that number as a double.
    #[inline]
    pub fn f64(&self, row: u32, word: usize) -> f64 {
        f64::from_bits(self.i64(row, word) as u64)
    }

    /// Sets a word to a double.
    #[inline]
    pub fn set_f64(&mut self, row: u32, word: usize, value: f64) {
        self.set_i64(row, word, value.to_bits() as i64);
    }

    /// Two words from that number on as a 128-bit integer.
    #[inline]
    pub fn i128(&self, row: u32, word: usize) -> i128 {
        let at = self.at(row, word);
        i128::from_le_bytes(self.bytes[at..at + 16].try_into().expect("sixteen bytes"))
    }

    /// Sets two words.
    #[inline]
    pub fn set_i128(&mut self, row: u32, word: usize, value: i128) {
        let at = self.at(row, word);
        self.bytes[at..at + 16].copy_from_slice(&value.to_le_bytes());
    }

    /// The object whose handle stands in that word.
    pub fn object<T: ObjectState>(&self, row: u32, word: usize) -> Option<&T> {
        self.objects.get(self.i64(row, word) as u64)
    }

    /// The object whose handle stands in that word, made first if there is none.
    pub fn object_or<T: ObjectState>(&mut self, row: u32, word: usize, make: impl FnOnce() -> T) -> &mut T {
        let mut handle = self.i64(row, word) as u64;
        if self.objects.get::<T>(handle).is_none() {
            handle = self.objects.insert(Box::new(make()));
            self.set_i64(row, word, handle as i64);
        }
        self.objects.get_mut(handle).expect("it is there or was just made")
    }

    /// Lets go of the object whose handle stands in that word, and clears the word.
    pub fn remove_object(&mut self, row: u32, word: usize) {
        let handle = self.i64(row, word) as u64;
        self.objects.remove(handle);
        self.set_i64(row, word, 0);
    }
}
