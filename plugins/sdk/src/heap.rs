//! The allocator of a plugin, which lives for one call: a bump allocator with a free list for each size class. It never merges
//! or returns memory. It uses up the linear memory that is there from the start before it grows it, since each growth costs
//! the host as much as many allocations. (AppService: a call takes 26 µs with it, 36 µs with the standard library's
//! allocator, 34 µs with `talc`.)
//!
//! A plugin with a global allocator of its own turns the feature `heap` off.

use std::{
    alloc::{GlobalAlloc, Layout},
    cell::UnsafeCell,
    ops::Range,
    ptr,
};

/// The smallest block. Every block begins at a multiple of it.
const UNIT: usize = 16;

/// The largest block whose size is rounded up to units. Larger ones are rounded up to a quarter of a power of two.
const MAX_SMALL: usize = 512;

/// How many size classes there are: 32 small ones, and four for each doubling up to the end of the address space.
const SIZE_CLASSES: usize = MAX_SMALL / UNIT + 4 * 23;

/// The memory that a heap hands out.
///
/// # Safety
/// Nothing else uses this memory.
pub unsafe trait Memory {
    /// The addresses of the memory before any growth.
    fn initial(&self) -> Range<usize>;

    /// Makes the memory longer by at least so many bytes. Returns its new end, or none if there is no more memory.
    fn grow(&self, bytes: usize) -> Option<usize>;
}

/// A heap for one thread.
pub struct Heap<M> {
    memory: M,
    blocks: UnsafeCell<Blocks>,
}

// SAFETY: the contract's components are single-threaded, and unit tests keep each heap to one thread.
unsafe impl<M> Sync for Heap<M> {}

struct Blocks {
    /// The address above which nothing was handed out yet; 0 before the first allocation.
    top: usize,
    /// The address where the memory ends.
    end: usize,
    /// The free lists, one for each size class: the address of the block that was freed last, which holds the address of the
    /// block that was freed before it; 0 at the end.
    free: [usize; SIZE_CLASSES],
}

impl<M> Heap<M> {
    /// A heap without any block.
    pub const fn new(memory: M) -> Self {
        Self { memory, blocks: UnsafeCell::new(Blocks { top: 0, end: 0, free: [0; SIZE_CLASSES] }) }
    }
}

/// A size that blocks have.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(Debug))]
struct SizeClass {
    /// Its index among all size classes, in the order of their sizes.
    index: usize,
    /// The size of its blocks.
    bytes: usize,
}

impl SizeClass {
    /// The smallest size class whose blocks hold so many bytes.
    fn of(bytes: usize) -> Self {
        if bytes <= MAX_SMALL {
            let units = bytes.div_ceil(UNIT).max(1);
            return Self { index: units - 1, bytes: units * UNIT };
        }
        let doubling = (bytes - 1).ilog2();
        let quarter = 1 << (doubling - 2);
        // 5 to 8: four quarters are the power of two itself, the last class of the doubling before.
        let quarters = bytes.div_ceil(quarter);
        let index = MAX_SMALL / UNIT + 4 * (doubling - MAX_SMALL.ilog2()) as usize + quarters - 5;
        Self { index, bytes: quarters * quarter }
    }
}

impl<M: Memory> Heap<M> {
    /// Takes a block from above all others.
    #[inline(never)]
    fn bump(&self, blocks: &mut Blocks, bytes: usize, align: usize) -> *mut u8 {
        if blocks.top == 0 {
            Range { start: blocks.top, end: blocks.end } = self.memory.initial();
        }
        let after = |top: usize| (top.checked_add(align - 1)? & !(align - 1)).checked_add(bytes);
        let Some(top) = after(blocks.top) else { return ptr::null_mut() };
        if top > blocks.end {
            let Some(end) = self.memory.grow(top - blocks.end) else { return ptr::null_mut() };
            blocks.end = end;
        }
        blocks.top = top;
        ptr::with_exposed_provenance_mut(top - bytes)
    }
}

// SAFETY: a block has one owner at a time: it comes from above all others, or from a free list, where its last owner put it. A
// block of a free list has the size of its class and begins at a multiple of `UNIT`.
//
// No function is inlined: hundreds of places would each hold a copy, in code that runs once per call and is always cold.
unsafe impl<M: Memory> GlobalAlloc for Heap<M> {
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: single-threaded, and no reference to the blocks outlives a call.
        let blocks = unsafe { &mut *self.blocks.get() };
        let class = SizeClass::of(layout.size());
        let first = blocks.free[class.index];
        // Blocks of a free list are aligned to `UNIT` only.
        if first == 0 || layout.align() > UNIT {
            return self.bump(blocks, class.bytes, layout.align().max(UNIT));
        }
        let block = ptr::with_exposed_provenance_mut::<u8>(first);
        // SAFETY: `dealloc` wrote the address of the next free block there.
        blocks.free[class.index] = unsafe { block.cast::<usize>().read() };
        block
    }

    #[inline(never)]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as in `alloc`.
        let blocks = unsafe { &mut *self.blocks.get() };
        let class = SizeClass::of(layout.size());
        // SAFETY: the block is no longer used, has room for an address and begins at a multiple of `UNIT`.
        unsafe { block.cast::<usize>().write(blocks.free[class.index]) };
        blocks.free[class.index] = block.expose_provenance();
    }

    #[inline(never)]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (before, after) = (SizeClass::of(layout.size()).bytes, SizeClass::of(size).bytes);
        if before == after {
            return block;
        }
        // SAFETY: as in `alloc`.
        let blocks = unsafe { &mut *self.blocks.get() };
        // The block below the top grows or shrinks in place: most reallocations are of the buffer that is being written.
        let is_topmost = block.addr() + before == blocks.top;
        if is_topmost && blocks.end.checked_sub(block.addr()).is_some_and(|room| after <= room) {
            blocks.top = block.addr() + after;
            return block;
        }
        // SAFETY: the alignment is that of a valid layout, and the caller vouches for the size.
        let moved = unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
        if !moved.is_null() {
            // SAFETY: two blocks, both long enough, and the old one belongs to the caller.
            unsafe {
                ptr::copy_nonoverlapping(block, moved, layout.size().min(size));
                self.dealloc(block, layout);
            }
        }
        moved
    }
}

#[cfg(target_family = "wasm")]
mod linear {
    use super::{Heap, Memory};
    use std::arch::wasm32::{memory_grow, memory_size};
    use std::ops::Range;

    const PAGE: usize = 1 << 16;

    /// The smallest growth.
    const MIN_GROWTH: usize = 4 * PAGE;

    unsafe extern "C" {
        /// The end of the linker's own data.
        static __heap_base: u8;
    }

    /// The linear memory above the linker's own data.
    struct Linear;

    // SAFETY: the linker puts nothing above its base of the heap, and no other allocator is linked in.
    unsafe impl Memory for Linear {
        fn initial(&self) -> Range<usize> {
            (&raw const __heap_base).expose_provenance()..memory_size(0) * PAGE
        }

        fn grow(&self, bytes: usize) -> Option<usize> {
            let before = memory_grow(0, bytes.max(MIN_GROWTH).div_ceil(PAGE));
            (before != usize::MAX).then(|| memory_size(0) * PAGE)
        }
    }

    #[global_allocator]
    static HEAP: Heap<Linear> = Heap::new(Linear);
}

#[cfg(test)]
mod tests {
    use super::{Heap, MAX_SMALL, Memory, SIZE_CLASSES, SizeClass, UNIT};
    use std::{
        alloc::{GlobalAlloc, Layout},
        cell::Cell,
        ops::Range,
    };

    const CAPACITY: usize = 1 << 20;

    /// A buffer that grows up to its capacity.
    struct Buffer {
        bytes: Box<[u64]>,
        length: Cell<usize>,
    }

    impl Buffer {
        fn new() -> Self {
            Self { bytes: vec![0; CAPACITY / 8].into(), length: Cell::new(100) }
        }

        fn base(&self) -> usize {
            self.bytes.as_ptr().expose_provenance()
        }
    }

    // SAFETY: the bytes are touched through the heap alone.
    unsafe impl Memory for Buffer {
        fn initial(&self) -> Range<usize> {
            self.base() + 3..self.base() + self.length.get()
        }

        fn grow(&self, bytes: usize) -> Option<usize> {
            let length = self.length.get() + bytes;
            (length <= CAPACITY).then(|| {
                self.length.set(length);
                self.base() + length
            })
        }
    }

    #[test]
    fn size_classes_are_in_order_and_waste_at_most_a_quarter() {
        let mut last = SizeClass { index: 0, bytes: UNIT };
        for bytes in (0..5_000).chain((13..31).flat_map(|power| (1 << power) - 2..(1 << power) + 3)) {
            let class = SizeClass::of(bytes);
            assert!(class.bytes >= bytes && class.bytes.is_multiple_of(UNIT), "{bytes}: {class:?}");
            assert!(class.index < SIZE_CLASSES, "{bytes}: {class:?}");
            let waste = if bytes > MAX_SMALL { bytes / 4 } else { 0 };
            assert!(class.bytes <= bytes.max(1).next_multiple_of(UNIT) + waste, "{bytes}: {class:?}");
            assert!(class == last || (class.index > last.index && class.bytes > last.bytes), "{bytes}: {class:?}");
            last = class;
        }
    }

    /// A block in use, filled with a byte of its own.
    struct UsedBlock {
        block: *mut u8,
        layout: Layout,
        byte: u8,
    }

    impl UsedBlock {
        fn fill(&self) {
            // SAFETY: the block belongs to this test, and is as long as its layout says.
            unsafe { self.block.write_bytes(self.byte, self.layout.size()) }
        }

        fn is_intact(&self, bytes: usize) -> bool {
            // SAFETY: as above; at most as many bytes as were filled.
            unsafe { std::slice::from_raw_parts(self.block, bytes) }.iter().all(|byte| *byte == self.byte)
        }
    }

    #[test]
    fn blocks_never_overlap_while_they_are_allocated_freed_and_resized() -> Result<(), std::alloc::LayoutError> {
        let mut random = 1_u64;
        let mut next = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % below
        };
        for _ in 0..40 {
            let heap = Heap::new(Buffer::new());
            let mut used: Vec<UsedBlock> = Vec::new();
            for step in 0..600 {
                let size = 1 + if next(8) == 0 { next(6_000) } else { next(200) };
                match next(3) {
                    0 if !used.is_empty() => {
                        let last = used.swap_remove(next(used.len()));
                        assert!(last.is_intact(last.layout.size()));
                        // SAFETY: allocated in this heap with this layout, and not freed yet.
                        unsafe { heap.dealloc(last.block, last.layout) };
                    }
                    1 if !used.is_empty() => {
                        let index = next(used.len());
                        let one = &mut used[index];
                        let kept = size.min(one.layout.size());
                        // SAFETY: as above; the size is small and not 0.
                        let moved = unsafe { heap.realloc(one.block, one.layout, size) };
                        if !moved.is_null() {
                            *one = UsedBlock {
                                block: moved,
                                layout: Layout::from_size_align(size, one.layout.align())?,
                                ..*one
                            };
                            assert!(one.is_intact(kept));
                            one.fill();
                        }
                    }
                    _ => {
                        let layout = Layout::from_size_align(size, 1 << next(8))?;
                        // SAFETY: the size is not 0.
                        let block = unsafe { heap.alloc(layout) };
                        if !block.is_null() {
                            assert_eq!(block.addr() % layout.align(), 0);
                            let one = UsedBlock { block, layout, byte: step as u8 };
                            one.fill();
                            used.push(one);
                        }
                    }
                }
            }
            assert!(used.iter().all(|one| one.is_intact(one.layout.size())));
        }
        Ok(())
    }

    #[test]
    fn freed_blocks_are_used_again_and_the_end_of_memory_is_no_crash() -> Result<(), std::alloc::LayoutError> {
        let heap = Heap::new(Buffer::new());
        let layout = Layout::from_size_align(CAPACITY / 4, 8)?;
        for _ in 0..100 {
            // SAFETY: the size is not 0; freed with the same layout.
            unsafe {
                let block = heap.alloc(layout);
                assert!(!block.is_null());
                heap.dealloc(block, layout);
            }
        }
        let too_much = Layout::from_size_align(2 * CAPACITY, 8)?;
        // SAFETY: the size is not 0.
        assert!(unsafe { heap.alloc(too_much) }.is_null());
        Ok(())
    }
}
