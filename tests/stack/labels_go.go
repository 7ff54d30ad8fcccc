// SPDX-License-Identifier: GPL-2.0-or-later
// Goroutines with labels of runtime/pprof, each in a call of its own thread: poll() for as many ms as its label says, so that each sample
// of such a call has its truth. A goroutine of 55 ms has no label. Others have no thread, as they receive what nobody sends. Arguments: the
// most ms of those that change all the time.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"
	"strconv"
	"syscall"
)

func wait(ms int) { syscall.Syscall(syscall.SYS_POLL, 0, 0, uintptr(ms)) }

// labels has that many labels beside ms, with the same words for the same ms.
func labels(ms, others int) pprof.LabelSet {
	words := []string{"ms", strconv.Itoa(ms)}
	for i := 0; i < others; i++ {
		words = append(words, fmt.Sprintf("größe%02d", i), strconv.Itoa(ms+i))
	}
	return pprof.Labels(words...)
}

//go:noinline
func park(never chan int) { <-never }

func main() {
	never := make(chan int)
	for i := 0; i < 6; i++ { // three with a label, two with another one, one without
		if i == 5 {
			go park(never)
		} else {
			pprof.Do(context.Background(), pprof.Labels("parked", strconv.Itoa(i/3)), func(context.Context) { go park(never) })
		}
	}
	most, _ := strconv.Atoi(os.Args[1])
	for first := 0; first < 3; first++ { // changes, with no, some or many other labels
		go func(first int) {
			for {
				for ms := 3 + first; ms <= most; ms += 3 {
					others := []int{0, 5, 20}[first]
					pprof.Do(context.Background(), labels(ms, others), func(context.Context) { wait(ms) })
				}
			}
		}(first)
	}
	go func() {
		for {
			wait(55)
		}
	}()
	pprof.Do(context.Background(), labels(600000, 1), func(context.Context) {
		go wait(600000) // goroutines take the labels of the one that begins them
	})
	fmt.Println("ready")
	wait(600001)
}
