package replay

import (
	"testing"
	"testing/synctest"
	"time"
)

// On the real clock a Sleeper may wake late, but never early. Wake ends its sleep.
func TestSleepers(t *testing.T) {
	exact, err := NewSleeper()
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]Sleeper{"of this system": exact, "timers": NewTimers()} {
		t.Run(name, func(t *testing.T) {
			done := make(chan struct{})
			go func() { // the sleeper may lock this goroutine's thread, which ends with the goroutine
				defer close(done)
				for _, d := range []time.Duration{-time.Second, 0, 50 * time.Microsecond, 3 * time.Millisecond, 20 * time.Millisecond} {
					at := time.Now().Add(d)
					s.Until(at)
					if now := time.Now(); now.Before(at) {
						t.Errorf("%v: woke %v early", d, at.Sub(now))
					}
				}
				s.Wake() // a Wake before a sleep ends it at once
				s.Until(time.Time{})
				s.Wake()
				s.Wake() // two Wakes count as one
				s.Until(time.Now().Add(time.Hour))
				wake := time.AfterFunc(5*time.Millisecond, s.Wake) // a Wake during the sleep
				s.Until(time.Now().Add(time.Hour))
				wake.Stop()
			}()
			<-done
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTimersAreExactInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewTimers()
		at := time.Now().Add(time.Hour)
		s.Until(at)
		want(t, "woke", time.Now(), at)
		time.AfterFunc(time.Second, s.Wake)
		s.Until(time.Time{})
		want(t, "woke", time.Now(), at.Add(time.Second))
	})
}
