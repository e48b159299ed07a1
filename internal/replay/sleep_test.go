package replay

import (
	"testing"
	"testing/synctest"
	"time"
)

// On the real clock nothing can be said of how late a Sleeper is, but never is it early, and a Wake ends it.
func TestSleepers(t *testing.T) {
	exact, err := NewSleeper()
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]Sleeper{"of this system": exact, "timers": NewTimers()} {
		t.Run(name, func(t *testing.T) {
			done := make(chan struct{})
			go func() { // the goroutine may lock its thread, and ends with it
				defer close(done)
				for _, d := range []time.Duration{-time.Second, 0, 50 * time.Microsecond, 3 * time.Millisecond, 20 * time.Millisecond} {
					at := time.Now().Add(d)
					s.Until(at)
					if now := time.Now(); now.Before(at) {
						t.Errorf("%v: woke %v early", d, at.Sub(now))
					}
				}
				s.Wake() // before: ends the next sleep at once
				s.Until(time.Time{})
				s.Wake()
				s.Wake() // two are one
				s.Until(time.Now().Add(time.Hour))
				wake := time.AfterFunc(5*time.Millisecond, s.Wake) // during
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
