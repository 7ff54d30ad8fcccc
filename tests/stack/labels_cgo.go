// SPDX-License-Identifier: GPL-2.0-or-later
// As labels_go.go, in code of C, in a program that the linker of C has made.
package main

/*
#include <poll.h>
static __thread int used;
static int rest(int ms) { return used += poll(0, 0, ms); }
*/
import "C"

import (
	"context"
	"fmt"
	"runtime/pprof"
	"strconv"
)

func main() {
	for first := 0; first < 3; first++ {
		go func(first int) {
			for {
				for ms := 3 + first; ms <= 20; ms += 3 {
					pprof.Do(context.Background(), pprof.Labels("ms", strconv.Itoa(ms)), func(context.Context) { C.rest(C.int(ms)) })
				}
			}
		}(first)
	}
	go func() {
		for {
			C.rest(55)
		}
	}()
	fmt.Println("ready")
	C.rest(600001)
}
