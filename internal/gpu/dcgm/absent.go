//go:build !dcgm || !linux || !(amd64 || arm64)

package dcgm

import (
	"errors"

	"replayd/internal/fault"
	"replayd/internal/gpu"
)

// errAbsent is the error of a build without purego. A build with purego needs a dynamic linker and a C library.
var errAbsent = errors.New("this build cannot load it: want one for linux/amd64 or linux/arm64 with the tag dcgm (make build-dcgm); " +
	"or read dcgm_exporter or nvidia_smi instead")

func open(Options, address) (gpu.Source, error) { return nil, fault.At("libdcgm", errAbsent) }
