package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/netresearch/go-cron"
)

const wantFields = `want five fields, minute, hour, day of month, month and day of week, such as "0 3 * * 1-5"`

// cronFields bounds the numbers in them; go-cron takes "61-5" for 1-5.
var cronFields = [...]struct {
	name string
	most int
}{{"minute", 59}, {"hour", 23}, {"day of month", 31}, {"month", 12}, {"day of week", 7}}

// parseCron reads an expression as crontab(5) has it: five fields, of which the two for days mean either when both are
// restricted. A name such as @daily, a time zone in front and go-cron's extensions are refused. What it returns is to be
// asked in UTC.
func parseCron(expression string) (*cron.SpecSchedule, error) {
	fields := strings.Fields(expression)
	if len(fields) != len(cronFields) {
		return nil, fmt.Errorf("%s, got %q", wantFields, expression)
	}
	for i, f := range cronFields {
		for _, digits := range strings.FieldsFunc(fields[i], func(r rune) bool { return r < '0' || r > '9' }) {
			if n, err := strconv.Atoi(digits); err != nil || n > f.most {
				return nil, fmt.Errorf("%s: want at most %d, got %q in %q", f.name, f.most, fields[i], expression)
			}
		}
	}
	parser, err := cron.TryNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.DowOrDom)
	if err != nil {
		return nil, err
	}
	// The longest wait is that from 29 February 2096 to the next one, in 2104.
	schedule, err := parser.WithMaxSearchYears(8).Parse(expression)
	if err != nil {
		return nil, fmt.Errorf("%s, got %q: %w", wantFields, expression, err)
	}
	spec, ok := schedule.(*cron.SpecSchedule)
	if !ok { // nothing but a name such as @every makes another
		return nil, errors.New(wantFields)
	}
	if slices.Contains([]uint64{spec.Minute, spec.Hour, spec.Dom, spec.Month, spec.Dow}, 0) {
		return nil, fmt.Errorf("%s, got %q with a field that holds nothing", wantFields, expression)
	}
	spec.Location = time.UTC
	if spec.Next(time.Unix(0, 0)).IsZero() {
		return nil, fmt.Errorf("want a day that there is, got %q, which never comes", expression)
	}
	return spec, nil
}
