// SPDX-License-Identifier: GPL-2.0-or-later
// Goroutines that are blocked in known functions, some of each kind, told by the runtime itself: a line with their number, and its own
// traces of all of them, for each line of standard input.
package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"time"
)

type waiters struct {
	begun   sync.WaitGroup
	empty   chan int
	full    chan int
	other   chan int
	mutex   sync.Mutex
	lock    sync.RWMutex
	cond    *sync.Cond
	never   sync.WaitGroup
	listens net.Listener
}

//go:noinline
func (w *waiters) receive() { <-w.empty }

//go:noinline
func (w *waiters) send() { w.full <- 1 }

//go:noinline
func (w *waiters) choose() {
	select {
	case <-w.empty:
	case <-w.other:
	}
}

//go:noinline
func (w *waiters) sleep() { time.Sleep(time.Hour) }

//go:noinline
func (w *waiters) take() { w.mutex.Lock() }

//go:noinline
func (w *waiters) read() { w.lock.RLock() }

//go:noinline
func (w *waiters) wait() {
	w.cond.L.Lock()
	w.cond.Wait()
}

//go:noinline
func (w *waiters) join() { w.never.Wait() }

//go:noinline
func (w *waiters) accept() { w.listens.Accept() }

//go:noinline
func (w *waiters) deep(depth int) int {
	var large [100]int

	if depth == 0 {
		w.receive()
		return 0
	}
	large[depth] = w.deep(depth - 1)
	return large[depth] + 1
}

func (w *waiters) begin(count int, what func()) {
	for i := 0; i < count; i++ {
		w.begun.Add(1)
		go func() {
			w.begun.Done()
			what()
		}()
	}
	w.begun.Wait()
}

func main() {
	w := &waiters{empty: make(chan int), full: make(chan int), other: make(chan int), cond: sync.NewCond(&sync.Mutex{})}
	buffer := make([]byte, 1<<20)
	input := bufio.NewReader(os.Stdin)

	w.mutex.Lock()
	w.lock.Lock()
	w.never.Add(1)
	w.listens, _ = net.Listen("tcp", "127.0.0.1:0")
	w.begin(40, w.receive)
	w.begin(7, w.send)
	w.begin(30, w.choose)
	w.begin(20, w.sleep)
	w.begin(10, w.take)
	w.begin(6, w.read)
	w.begin(5, w.wait)
	w.begin(4, w.join)
	w.begin(1, w.accept)
	w.begin(3, func() { w.deep(40) })
	for {
		if _, err := input.ReadString('\n'); err != nil {
			return
		}
		runtime.GC()
		fmt.Printf("goroutines %d\n%send\n", runtime.NumGoroutine(), buffer[:runtime.Stack(buffer, true)])
	}
}
