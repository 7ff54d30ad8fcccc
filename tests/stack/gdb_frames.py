"""Run by gdb, which has a process attached: prints the frames of its threads, innermost first, as gdb unwinds them. Frames that gdb
makes up from debug information (inlined functions, tail calls) are left out, because they have no return address."""
import gdb

for words in ("backtrace past-main on", "backtrace past-entry on", "backtrace limit 600"):
    gdb.execute("set " + words)
for thread in sorted(gdb.selected_inferior().threads(), key=lambda thread: thread.ptid[1]):
    thread.switch()
    print("thread %d" % thread.ptid[1])
    frame, reason = gdb.newest_frame(), ""
    while frame is not None:
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            print("frame %d %d" % (frame.pc(), frame.type() == gdb.SIGTRAMP_FRAME))
        try:
            older, reason = frame.older(), gdb.frame_stop_reason_string(frame.unwind_stop_reason())
        except gdb.error as error:
            older, reason = None, str(error).replace("\n", " ")
        frame = older
    print("end %s" % reason)
print("all threads")
