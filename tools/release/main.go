// Command release makes the files of a release of replayd from its repository: `make release` and `make release-push`
// run it. It is a module of its own, so that the product does not depend on what it needs.
//
//	release -version V -revision R make    writes every file into -out
//	release -version V -revision R twice   writes them into -out and once more into another folder, and lists those that differ
//	release -version V -revision R push    pushes the image and the chart of -out to the registry of OWNER.yaml
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	root := flags.String("root", ".", "the repository")
	dist := flags.String("out", "dist", "the folder of the files, relative to the repository; make and twice empty it")
	described := flags.String("version", "", "what git describe gives for the commit")
	revision := flags.String("revision", "", "the commit")
	small := flags.Bool("small", false, "only the platforms that have packages and an image")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("want one command, make, twice or push, got %q", flags.Args())
	}
	r, err := newRelease(ctx, *root, *described, *revision)
	if err != nil {
		return err
	}
	defer r.close()
	r.log = out
	if *small {
		r.platforms = packaged
	}
	if r.out = *dist; !filepath.IsAbs(r.out) {
		r.out = filepath.Join(r.root, r.out)
	}
	switch command := flags.Arg(0); command {
	case "make":
		return r.make(ctx)
	case "twice":
		return r.twice(ctx)
	case "push":
		if *small {
			return fmt.Errorf("-small: want every platform in what is pushed")
		}
		return r.push(ctx)
	default:
		return fmt.Errorf("want the command make, twice or push, got %q", command)
	}
}
