package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Share returns a flag of a share, such as 0.05 or 5%.
func Share(of *float64) pflag.Value { return (*share)(of) }

type share float64

func (s *share) String() string { return strconv.FormatFloat(float64(*s), 'g', -1, 64) }

// Type is the flag's type in the help.
func (s *share) Type() string { return "share" }

// Set implements pflag.Value.
func (s *share) Set(text string) error {
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil {
		return fmt.Errorf("want a share such as 0.05 or 5%%, got %q", text)
	}
	if percent {
		v /= 100
	}
	*s = share(v)
	return nil
}
