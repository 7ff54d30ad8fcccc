// SPDX-License-Identifier: GPL-2.0-or-later
// The same in Go, whose threads run goroutines, each with a stack of its own.
package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
)

type basket[T any] struct {
	things []T
}

var chains = map[string]func(){"called": called, "routine": routine}

//go:noinline
func waitHere(chain string) int {
	var end [1]byte

	runtime.LockOSThread()
	fmt.Printf("ready %d main.waitHere %s\n", syscall.Gettid(), chain)
	for {
		if n, _ := syscall.Read(0, end[:]); n <= 0 {
			os.Exit(0)
		}
	}
}

//go:noinline
func (b *basket[T]) fill(thing T, chain string) int {
	b.things = append(b.things, thing)
	return waitHere(chain) + len(b.things)
}

//go:noinline
func called() {
	kept := basket[int]{}
	fmt.Println(kept.fill(1, "* main.called main.main * runtime.main"))
}

//go:noinline
func begun(number int, done chan int) {
	done <- waitHere("main.begun") + number
}

func routine() {
	done := make(chan int)
	go begun(1, done)
	fmt.Println(<-done)
}

func main() {
	if len(os.Args) < 2 {
		for name := range chains {
			fmt.Println(name)
		}
		return
	}
	chains[os.Args[1]]()
}
