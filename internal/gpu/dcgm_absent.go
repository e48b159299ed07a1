//go:build !dcgm || !linux || !(amd64 || arm64)

package gpu

import "errors"

// errNoDCGM is what a build without purego says. With it the binary would ask for an interpreter and a C library.
var errNoDCGM = errors.New("libdcgm: this build cannot load it: want one for linux/amd64 or linux/arm64 with the tag dcgm (make build-dcgm); " +
	"or read dcgm_exporter or nvidia_smi instead")

func openDCGM(DCGMOptions, dcgmAddress) (Source, error) { return nil, errNoDCGM }
