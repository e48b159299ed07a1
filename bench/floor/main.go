//go:build linux

// Command floor is the least that a client can do with answers: one thread with an epoll loop reads the sockets and
// finds the ends of lines. Its CPU time is the floor of every load generator.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"replayd/bench/lab"
)

func main() {
	plan, err := lab.Flags("floor", os.Args[1:])
	if err == nil {
		err = run(plan, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

// run plays the plan and reports its cost.
func run(plan lab.Plan, out io.Writer) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l, err := open(plan)
	if err != nil {
		return err
	}
	defer l.close()
	account, err := lab.OpenAccount()
	if err != nil {
		return err
	}
	l.start = time.Now()
	for l.ended < plan.Requests {
		if err := l.send(); err != nil {
			return err
		}
		if err := l.receive(); err != nil {
			return err
		}
	}
	spent, err := account.Close(l.ended, l.tokens)
	if err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(out).Encode(spent), lab.WriteLines(plan.Out, l.seen))
}
