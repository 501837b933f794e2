//! The heap of a plugin, which lives for one call: it hands memory out from the bottom upwards, takes it back into lists by
//! size, and never tidies up. It uses what the linear memory has from the start before it asks for more, since each growth
//! costs the host as much as many allocations. (AppService: a call takes 26 µs with it, 36 µs with the standard library's
//! heap, 34 µs with `talc`.)
//!
//! Off without the feature `heap`, for a plugin with a global allocator of its own.

use std::{
    alloc::{GlobalAlloc, Layout},
    cell::UnsafeCell,
    ptr,
};

/// Blocks begin at multiples of this, and are no smaller.
const UNIT: usize = 16;

/// The largest block whose size is rounded to units; larger ones are rounded to a quarter of a power of two.
const SMALL: usize = 512;

/// Sizes of blocks: 32 small ones, and four for each doubling up to the end of the address space.
const SIZES: usize = SMALL / UNIT + 4 * 23;

/// Where a heap has its memory from.
///
/// # Safety
/// What it offers is memory that nothing else uses.
pub unsafe trait Memory {
    /// The addresses of the first byte and of the byte after the last one, before any growth.
    fn start(&self) -> (usize, usize);

    /// Makes the memory longer by at least so many bytes; where it ends now, or none if there is no more.
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
    /// Above this address nothing was handed out yet; 0 before the first allocation.
    top: usize,
    end: usize,
    /// By size, the block that was given back last, each holding the address of the one before; 0 for none.
    free: [usize; SIZES],
}

impl<M> Heap<M> {
    /// A heap that has handed out nothing.
    pub const fn new(memory: M) -> Self {
        Self { memory, blocks: UnsafeCell::new(Blocks { top: 0, end: 0, free: [0; SIZES] }) }
    }
}

/// A size that blocks have: its number, and how many bytes it is.
fn size_of_block(bytes: usize) -> (usize, usize) {
    if bytes <= SMALL {
        let units = bytes.div_ceil(UNIT).max(1);
        return (units - 1, units * UNIT);
    }
    let doubling = (bytes - 1).ilog2();
    let quarter = 1 << (doubling - 2);
    let quarters = bytes.div_ceil(quarter);
    (SMALL / UNIT + 4 * (doubling - SMALL.ilog2()) as usize + quarters - 5, quarters * quarter)
}

impl<M: Memory> Heap<M> {
    /// Takes a block from above all others.
    #[inline(never)]
    fn take(&self, blocks: &mut Blocks, bytes: usize, align: usize) -> *mut u8 {
        if blocks.top == 0 {
            (blocks.top, blocks.end) = self.memory.start();
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

// SAFETY: a block is handed out to one owner at a time: it comes from above all others, or from a list to which its last
// owner gave it back. A block of a list is of the size asked for and begins at a multiple of `UNIT`.
//
// No part of it is inlined: hundreds of places would each hold a copy, in code that runs once per call and is cold whenever it
// does.
unsafe impl<M: Memory> GlobalAlloc for Heap<M> {
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: single-threaded, and no reference to the blocks outlives a call.
        let blocks = unsafe { &mut *self.blocks.get() };
        let (number, bytes) = size_of_block(layout.size());
        let first = blocks.free[number];
        if first == 0 || layout.align() > UNIT {
            return self.take(blocks, bytes, layout.align().max(UNIT));
        }
        let block = ptr::with_exposed_provenance_mut::<u8>(first);
        // SAFETY: who gave the block back wrote the next one's address there.
        blocks.free[number] = unsafe { block.cast::<usize>().read() };
        block
    }

    #[inline(never)]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as in `alloc`.
        let blocks = unsafe { &mut *self.blocks.get() };
        let (number, _) = size_of_block(layout.size());
        // SAFETY: the block is no longer used, has room for an address and begins at a multiple of `UNIT`.
        unsafe { block.cast::<usize>().write(blocks.free[number]) };
        blocks.free[number] = block.expose_provenance();
    }

    #[inline(never)]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let ((_, before), (_, after)) = (size_of_block(layout.size()), size_of_block(size));
        if before == after {
            return block;
        }
        // SAFETY: as in `alloc`.
        let blocks = unsafe { &mut *self.blocks.get() };
        let is_last = block.addr() + before == blocks.top;
        if is_last && blocks.end.checked_sub(block.addr()).is_some_and(|room| after <= room) {
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

    const PAGE: usize = 1 << 16;

    /// The least growth.
    const STEP: usize = 4 * PAGE;

    unsafe extern "C" {
        /// Where the linker's own data ends.
        static __heap_base: u8;
    }

    /// What of the linear memory the linker left over.
    struct Linear;

    // SAFETY: the linker puts nothing above its base of the heap, and no other allocator is linked in.
    unsafe impl Memory for Linear {
        fn start(&self) -> (usize, usize) {
            ((&raw const __heap_base).expose_provenance(), memory_size(0) * PAGE)
        }

        fn grow(&self, bytes: usize) -> Option<usize> {
            let before = memory_grow(0, bytes.max(STEP).div_ceil(PAGE));
            (before != usize::MAX).then(|| memory_size(0) * PAGE)
        }
    }

    #[global_allocator]
    static HEAP: Heap<Linear> = Heap::new(Linear);
}

#[cfg(test)]
mod tests {
    use super::{Heap, Memory, SIZES, SMALL, UNIT, size_of_block};
    use std::{
        alloc::{GlobalAlloc, Layout},
        cell::Cell,
    };

    const ALL: usize = 1 << 20;

    /// A piece of memory, offered step by step.
    struct Piece {
        bytes: Box<[u64]>,
        offered: Cell<usize>,
    }

    impl Piece {
        fn new() -> Self {
            Self { bytes: vec![0; ALL / 8].into(), offered: Cell::new(100) }
        }

        fn base(&self) -> usize {
            self.bytes.as_ptr().expose_provenance()
        }
    }

    // SAFETY: the bytes are touched through the heap alone.
    unsafe impl Memory for Piece {
        fn start(&self) -> (usize, usize) {
            (self.base() + 3, self.base() + self.offered.get())
        }

        fn grow(&self, bytes: usize) -> Option<usize> {
            let offered = self.offered.get() + bytes;
            (offered <= ALL).then(|| {
                self.offered.set(offered);
                self.base() + offered
            })
        }
    }

    #[test]
    fn sizes_of_blocks_are_numbered_in_order_and_waste_at_most_a_quarter() {
        let mut last = (0, UNIT);
        for bytes in (0..5_000).chain((13..31).flat_map(|power| (1 << power) - 2..(1 << power) + 3)) {
            let (number, block) = size_of_block(bytes);
            assert!(block >= bytes && block % UNIT == 0 && number < SIZES, "{bytes}: {number}, {block}");
            assert!(block <= bytes.max(1).next_multiple_of(UNIT) + if bytes > SMALL { bytes / 4 } else { 0 });
            assert!((number, block) == last || (number > last.0 && block > last.1), "{bytes}: {number}, {block}");
            last = (number, block);
        }
    }

    /// A block in use, filled with its own mark.
    struct Used {
        block: *mut u8,
        layout: Layout,
        mark: u8,
    }

    impl Used {
        fn fill(&self) {
            // SAFETY: the block is this test's, and as long as its layout says.
            unsafe { self.block.write_bytes(self.mark, self.layout.size()) }
        }

        fn is_intact(&self, bytes: usize) -> bool {
            // SAFETY: as above; at most as many bytes as were filled.
            unsafe { std::slice::from_raw_parts(self.block, bytes) }.iter().all(|byte| *byte == self.mark)
        }
    }

    #[test]
    fn no_block_touches_another_whatever_is_taken_given_back_and_resized() -> Result<(), std::alloc::LayoutError> {
        let mut random = 1_u64;
        let mut next = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % below
        };
        for _ in 0..40 {
            let heap = Heap::new(Piece::new());
            let mut used: Vec<Used> = Vec::new();
            for step in 0..600 {
                let size = 1 + if next(8) == 0 { next(6_000) } else { next(200) };
                match next(3) {
                    0 if !used.is_empty() => {
                        let last = used.swap_remove(next(used.len()));
                        assert!(last.is_intact(last.layout.size()));
                        // SAFETY: taken from this heap with this layout, and not given back.
                        unsafe { heap.dealloc(last.block, last.layout) };
                    }
                    1 if !used.is_empty() => {
                        let index = next(used.len());
                        let one = &mut used[index];
                        let kept = size.min(one.layout.size());
                        // SAFETY: as above; the size is small and not 0.
                        let moved = unsafe { heap.realloc(one.block, one.layout, size) };
                        if !moved.is_null() {
                            *one = Used {
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
                            let one = Used { block, layout, mark: step as u8 };
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
    fn what_is_given_back_is_used_again_and_the_end_is_no_crash() -> Result<(), std::alloc::LayoutError> {
        let heap = Heap::new(Piece::new());
        let layout = Layout::from_size_align(ALL / 4, 8)?;
        for _ in 0..100 {
            // SAFETY: the size is not 0; given back with the same layout.
            unsafe {
                let block = heap.alloc(layout);
                assert!(!block.is_null());
                heap.dealloc(block, layout);
            }
        }
        let too_much = Layout::from_size_align(2 * ALL, 8)?;
        // SAFETY: the size is not 0.
        assert!(unsafe { heap.alloc(too_much) }.is_null());
        Ok(())
    }
}
