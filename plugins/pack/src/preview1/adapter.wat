;; WASI preview 1 for plugins whose compiler knows no newer one (Go, C): no files, no network, no environment, no arguments. What is
;; printed becomes log lines, and what is printed to standard error also explains a trap that follows. The wall clock and random
;; numbers are those of the host, which fixes them for each call. Unlike the adapter of wasmtime it imports nothing that a garbage
;; collection would call, for one may run while the host allocates, when imports are forbidden.
(module
  (import "env" "memory" (memory 0))
  (import "pilothouse:plugin/log@CONTRACT_VERSION" "write" (func $log (param $level i32) (param $text i32) (param $length i32)))
  (import "pilothouse:plugin/trap@CONTRACT_VERSION" "explain" (func $explain (param i64 i64 i64 i64)))
  (import "wasi:clocks/wall-clock@0.2.0" "now" (func $now (param $result i32)))
  (import "wasi:random/random@0.2.0" "get-random-u64" (func $random (result i64)))

  ;; A page of the guest's memory, taken when it is needed first: the result of $now, then the line that is not ended yet.
  (global $page (mut i32) (i32.const 0))
  ;; The pages of the memory since it was taken. Once there are more, another one is taken: the allocator of Go takes what is above its own for
  ;; its own as soon as it has grown the memory, whoever has taken some in between.
  (global $pages (mut i32) (i32.const 0))
  (global $line-length (mut i32) (i32.const 0))
  ;; By which it is known that nobody has written over the line.
  (global $line-hash (mut i64) (i64.const -3750763034362895579))
  ;; Whose line it is: 1 is standard output, 2 standard error.
  (global $line-of (mut i32) (i32.const 1))
  ;; Nanoseconds. Each read moves it on, for those who wait until it has.
  (global $monotonic (mut i64) (i64.const 1000000000))

  (func $scratch (result i32)
    (local $grown i32) (local $before i32)
    (if (i32.ne (global.get $pages) (memory.size))
      (then
        (local.set $before (global.get $page))
        (local.set $grown (memory.grow (i32.const 1)))
        (if (i32.eq (local.get $grown) (i32.const -1)) (then unreachable))
        (global.set $page (i32.shl (local.get $grown) (i32.const 16)))
        (global.set $pages (memory.size))
        (call $take-line-from (local.get $before))))
    (global.get $page))

  ;; The line comes along, unless somebody has written over it.
  (func $take-line-from (param $before i32)
    (local $from i32) (local $end i32) (local $hash i64)
    (if (i32.eqz (global.get $line-length)) (then return))
    (memory.copy
      (i32.add (global.get $page) (i32.const 64)) (i32.add (local.get $before) (i32.const 64)) (global.get $line-length))
    (local.set $from (i32.add (global.get $page) (i32.const 64)))
    (local.set $end (i32.add (local.get $from) (global.get $line-length)))
    (local.set $hash (i64.const -3750763034362895579))
    (loop $bytes
      (local.set $hash (call $hashed (local.get $hash) (i32.load8_u (local.get $from))))
      (local.set $from (i32.add (local.get $from) (i32.const 1)))
      (br_if $bytes (i32.lt_u (local.get $from) (local.get $end))))
    (if (i64.ne (local.get $hash) (global.get $line-hash)) (then (call $begin-line))))

  (func $hashed (param $hash i64) (param $byte i32) (result i64)
    (i64.mul (i64.xor (local.get $hash) (i64.extend_i32_u (local.get $byte))) (i64.const 1099511628211)))

  (func $begin-line
    (global.set $line-length (i32.const 0))
    (global.set $line-hash (i64.const -3750763034362895579)))

  (func $line (result i32) (i32.add (call $scratch) (i32.const 64)))

  ;; The line goes to the log, and to what explains a trap if it is of standard error.
  (func $flush
    (local $from i32) (local $end i32)
    (if (i32.eqz (global.get $line-length)) (then return))
    (local.set $from (call $line))
    (if (i32.eqz (global.get $line-length)) (then return))
    (local.set $end (i32.add (local.get $from) (global.get $line-length)))
    ;; Levels: 1 warns, 2 informs.
    (call $log (i32.sub (i32.const 3) (global.get $line-of)) (local.get $from) (global.get $line-length))
    (if (i32.eq (global.get $line-of) (i32.const 2))
      (then
        ;; A space between lines, and zeros up to 32 bytes, which are left out.
        (i32.store8 (local.get $end) (i32.const 32))
        (memory.fill (i32.add (local.get $end) (i32.const 1)) (i32.const 0) (i32.const 32))
        (loop $chunks
          (call $explain
            (i64.load (local.get $from)) (i64.load offset=8 (local.get $from))
            (i64.load offset=16 (local.get $from)) (i64.load offset=24 (local.get $from)))
          (local.set $from (i32.add (local.get $from) (i32.const 32)))
          (br_if $chunks (i32.le_u (local.get $from) (local.get $end))))))
    (call $begin-line))

  (func $print (param $byte i32)
    (if (i32.eq (local.get $byte) (i32.const 10)) (then (call $flush) (return)))
    (i32.store8 (i32.add (call $line) (global.get $line-length)) (local.get $byte))
    (global.set $line-hash (call $hashed (global.get $line-hash) (local.get $byte)))
    (global.set $line-length (i32.add (global.get $line-length) (i32.const 1)))
    (if (i32.eq (global.get $line-length) (i32.const 4096)) (then (call $flush))))

  (func (export "fd_write") (param $file i32) (param $parts i32) (param $count i32) (param $written i32) (result i32)
    (local $from i32) (local $end i32) (local $sum i32)
    (if (i32.gt_u (i32.sub (local.get $file) (i32.const 1)) (i32.const 1)) (then (return (i32.const 8))))
    (if (i32.ne (local.get $file) (global.get $line-of)) (then (call $flush) (global.set $line-of (local.get $file))))
    (block $done
      (loop $next-part
        (br_if $done (i32.eqz (local.get $count)))
        (local.set $from (i32.load (local.get $parts)))
        (local.set $end (i32.add (local.get $from) (i32.load offset=4 (local.get $parts))))
        (local.set $sum (i32.add (local.get $sum) (i32.load offset=4 (local.get $parts))))
        (block $part-done
          (loop $bytes
            (br_if $part-done (i32.ge_u (local.get $from) (local.get $end)))
            (call $print (i32.load8_u (local.get $from)))
            (local.set $from (i32.add (local.get $from) (i32.const 1)))
            (br $bytes)))
        (local.set $parts (i32.add (local.get $parts) (i32.const 8)))
        (local.set $count (i32.sub (local.get $count) (i32.const 1)))
        (br $next-part)))
    (i32.store (local.get $written) (local.get $sum))
    (i32.const 0))

  ;; The standard streams are terminals, so that lines are not kept back. Nothing else is open.
  (func (export "fd_fdstat_get") (param $file i32) (param $result i32) (result i32)
    (if (i32.gt_u (local.get $file) (i32.const 2)) (then (return (i32.const 8))))
    (memory.fill (local.get $result) (i32.const 0) (i32.const 24))
    (i32.store8 (local.get $result) (i32.const 2))
    ;; The right to write.
    (i64.store offset=8 (local.get $result) (i64.const 64))
    (i32.const 0))
  ;; What is printed without the end of its line is a line of this call, and not the beginning of one of the next.
  (func $sync (param $file i32) (result i32)
    (if (i32.gt_u (i32.sub (local.get $file) (i32.const 1)) (i32.const 1)) (then (return (i32.const 8))))
    (call $flush)
    (i32.const 0))
  (export "fd_datasync" (func $sync))
  (export "fd_sync" (func $sync))
  (func (export "fd_read") (param $file i32) (param i32 i32) (param $read i32) (result i32)
    (if (local.get $file) (then (return (i32.const 8))))
    (i32.store (local.get $read) (i32.const 0))
    (i32.const 0))

  (func (export "clock_res_get") (param $clock i32) (param $result i32) (result i32)
    (i64.store (local.get $result) (select (i64.const 1000) (i64.const 1000000000) (local.get $clock)))
    (i32.const 0))
  (func $tick (result i64)
    (global.set $monotonic (i64.add (global.get $monotonic) (i64.const 1000)))
    (global.get $monotonic))
  (func (export "clock_time_get") (param $clock i32) (param i64) (param $result i32) (result i32)
    (local $scratch i32)
    (if (local.get $clock)
      (then
        (i64.store (local.get $result) (call $tick))
        (return (i32.const 0))))
    (call $now (local.tee $scratch (call $scratch)))
    (i64.store (local.get $result)
      (i64.add
        (i64.mul (i64.load (local.get $scratch)) (i64.const 1000000000))
        (i64.load32_u offset=8 (local.get $scratch))))
    (i32.const 0))

  (func (export "random_get") (param $from i32) (param $length i32) (result i32)
    (local $end i32) (local $bits i64) (local $left i32)
    (local.set $end (i32.add (local.get $from) (local.get $length)))
    (block $done
      (loop $bytes
        (br_if $done (i32.ge_u (local.get $from) (local.get $end)))
        (if (i32.eqz (local.get $left))
          (then (local.set $bits (call $random)) (local.set $left (i32.const 8))))
        (i64.store8 (local.get $from) (local.get $bits))
        (local.set $bits (i64.shr_u (local.get $bits) (i64.const 8)))
        (local.set $left (i32.sub (local.get $left) (i32.const 1)))
        (local.set $from (i32.add (local.get $from) (i32.const 1)))
        (br $bytes)))
    (i32.const 0))

  ;; Who sleeps is woken at once, and the monotonic clock has moved on that far. Nothing else ever happens.
  (func (export "poll_oneoff") (param $wanted i32) (param $events i32) (param $count i32) (param $happened i32) (result i32)
    (local $number i32) (local $time i64)
    (block $done
      (loop $next
        (br_if $done (i32.eqz (local.get $count)))
        (if (i32.eqz (i32.load8_u offset=8 (local.get $wanted)))
          (then
            (local.set $time (i64.load offset=24 (local.get $wanted)))
            ;; Unless it is a point in time, it is how long from now.
            (if (i32.eqz (i32.and (i32.load16_u offset=40 (local.get $wanted)) (i32.const 1)))
              (then (local.set $time (i64.add (local.get $time) (global.get $monotonic)))))
            (if (i64.gt_u (local.get $time) (global.get $monotonic)) (then (global.set $monotonic (local.get $time))))
            (memory.fill (local.get $events) (i32.const 0) (i32.const 32))
            (i64.store (local.get $events) (i64.load (local.get $wanted)))
            (local.set $events (i32.add (local.get $events) (i32.const 32)))
            (local.set $number (i32.add (local.get $number) (i32.const 1)))))
        (local.set $wanted (i32.add (local.get $wanted) (i32.const 48)))
        (local.set $count (i32.sub (local.get $count) (i32.const 1)))
        (br $next)))
    (i32.store (local.get $happened) (local.get $number))
    (i32.const 0))

  (func (export "sched_yield") (result i32) (i32.const 0))
  (func (export "proc_exit") (param i32) (call $flush) unreachable)
  (func (export "proc_raise") (param i32) (result i32) (call $flush) unreachable)

  ;; None.
  (func $none (param $count i32) (param $bytes i32) (result i32)
    (i32.store (local.get $count) (i32.const 0))
    (i32.store (local.get $bytes) (i32.const 0))
    (i32.const 0))
  (export "args_sizes_get" (func $none))
  (export "environ_sizes_get" (func $none))
  (func (export "args_get") (param i32 i32) (result i32) (i32.const 0))
  (func (export "environ_get") (param i32 i32) (result i32) (i32.const 0))

  ;; There are no files: 8 is EBADF.
  (func $bad-1 (param i32) (result i32) (i32.const 8))
  (export "fd_close" (func $bad-1))
  (func $bad-2 (param i32 i32) (result i32) (i32.const 8))
  (export "fd_fdstat_set_flags" (func $bad-2))
  (export "fd_filestat_get" (func $bad-2))
  (export "fd_prestat_get" (func $bad-2))
  (export "fd_renumber" (func $bad-2))
  (export "fd_tell" (func $bad-2))
  (export "sock_shutdown" (func $bad-2))
  (func $bad-3 (param i32 i32 i32) (result i32) (i32.const 8))
  (export "fd_prestat_dir_name" (func $bad-3))
  (export "path_create_directory" (func $bad-3))
  (export "path_remove_directory" (func $bad-3))
  (export "path_unlink_file" (func $bad-3))
  (export "sock_accept" (func $bad-3))
  (func $bad-5 (param i32 i32 i32 i32 i32) (result i32) (i32.const 8))
  (export "path_filestat_get" (func $bad-5))
  (export "path_symlink" (func $bad-5))
  (export "sock_send" (func $bad-5))
  (func $bad-6 (param i32 i32 i32 i32 i32 i32) (result i32) (i32.const 8))
  (export "path_readlink" (func $bad-6))
  (export "path_rename" (func $bad-6))
  (export "sock_recv" (func $bad-6))
  (func $bad-at (param i32 i32 i32 i64 i32) (result i32) (i32.const 8))
  (export "fd_pread" (func $bad-at))
  (export "fd_pwrite" (func $bad-at))
  (export "fd_readdir" (func $bad-at))
  (func $bad-span (param i32 i64 i64) (result i32) (i32.const 8))
  (export "fd_allocate" (func $bad-span))
  (export "fd_fdstat_set_rights" (func $bad-span))
  (func $bad-times (param i32 i64 i64 i32) (result i32) (i32.const 8))
  (export "fd_advise" (func $bad-times))
  (export "fd_filestat_set_times" (func $bad-times))
  (func (export "fd_filestat_set_size") (param i32 i64) (result i32) (i32.const 8))
  (func (export "fd_seek") (param i32 i64 i32 i32) (result i32) (i32.const 8))
  (func (export "path_filestat_set_times") (param i32 i32 i32 i32 i64 i64 i32) (result i32) (i32.const 8))
  (func (export "path_link") (param i32 i32 i32 i32 i32 i32 i32) (result i32) (i32.const 8))
  (func (export "path_open") (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32) (i32.const 8)))
