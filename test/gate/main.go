// Command gate reads what `go test -json` wrote, for .ci/run. Of a package that failed it says whether the fault is proven
// or whether a second look may still clear it; of one that a second look cleared it says which tests failed by chance.
//
//	gate again TESTS [WHOLE]
//	gate report -skips LIST -flaky FILE TESTS [WHOLE]
//
// TESTS has the first look at every package, and after it the second looks at root tests. WHOLE has the second looks at
// whole packages. again prints the packages that need one, one a line. Both exit with 1 where a fault is proven.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	command := ""
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet("gate "+command, flag.ContinueOnError)
	switch command {
	case "again":
		if err := flags.Parse(args); err != nil || flags.NArg() < 1 || flags.NArg() > 2 {
			return fmt.Errorf("usage: gate again TESTS [WHOLE]")
		}
		l, err := read(flags.Args()...)
		if err != nil {
			return err
		}
		return l.again(out)
	case "report":
		skips := flags.String("skips", "", "the `file` that lists the tests that may skip")
		flaky := flags.String("flaky", "", "the `file` to write the tests to that failed by chance")
		if err := flags.Parse(args); err != nil || flags.NArg() < 1 || flags.NArg() > 2 {
			return fmt.Errorf("usage: gate report -skips LIST -flaky FILE TESTS [WHOLE]")
		}
		l, err := read(flags.Args()...)
		if err != nil {
			return err
		}
		return l.report(out, *skips, *flaky)
	}
	return fmt.Errorf("usage: gate again | report, got %q", command)
}

// again prints the packages to look at again as a whole.
func (l looks) again(out io.Writer) error {
	var faults []string
	for _, p := range l.packages() {
		switch v := l[p].judge(); v.is {
		case red:
			faults = append(faults, p+": "+v.why)
		case unclear:
			fmt.Fprintln(out, p)
		}
	}
	if n := l.failedRoots(); n > mostFailures {
		faults = append(faults, fmt.Sprintf("%d tests failed: more than %d are no chance", n, mostFailures))
	}
	return proven(faults)
}

func proven(faults []string) error {
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("proven faults:\n  %s", strings.Join(faults, "\n  "))
}
