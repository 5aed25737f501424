package machine

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func TestDescribe(t *testing.T) {
	m := Describe()
	if m.Model == "" || m.Cores < 1 || m.Memory < 1 || m.Kernel == "" || m.Go == "" {
		t.Errorf("%+v", m)
	}
	if field("/no/such/file", "x", ":") != "" {
		t.Error("missing file: got a value, want none")
	}
}

// TestNoise checks that sleeps are not late on a machine without noise.
func TestNoise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := MonitorNoise(t.Context())
		<-time.After(time.Second)
		n := stop()
		if n.Sleep.N != 10 || n.Sleep.Max.Value != 0 || n.Spin.N != 10 {
			t.Errorf("%+v", n)
		}
		if b := MeasureNoise(t.Context()); b.Sleep.N < 299 {
			t.Errorf("%+v", b)
		}
	})
}

func TestLateness(t *testing.T) {
	var l Lateness
	l.Tick(time.Now().Add(-30 * time.Millisecond))
	if late := l.Late(); len(late) != 1 || late[0] < 30 {
		t.Errorf("%v", late)
	}
}

func TestSpent(t *testing.T) {
	before, busy := CPUTime(os.Getpid()).Own, TotalCPUTime()
	for began := time.Now(); time.Since(began) < 50*time.Millisecond || CPUTime(os.Getpid()).Own == before || TotalCPUTime() == busy; {
		if time.Since(began) > 20*time.Second {
			t.Fatal("work took no CPU time")
		}
	}
	if CPUTime(1<<30) != (CPU{}) || RSS(1<<30) != 0 {
		t.Error("missing process: got CPU time, want none")
	}
	if RSS(os.Getpid()) < 1<<20 {
		t.Error("got no memory of this process")
	}
}

// TestDisk checks that pages are written past the end of the file, and that the file is removed
// afterward.
func TestDisk(t *testing.T) {
	dir := t.TempDir()
	d, err := OpenDisk(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = d.During(t.Context())(); err != nil {
		t.Error(err)
	}
	d.at = logSize - pageSize
	took, err := d.Before(t.Context(), 100*time.Millisecond)
	if len(took) == 0 || err != nil {
		t.Errorf("got %v, %v", took, err)
	}
	if at, fault := d.file.Seek(0, io.SeekEnd); at != logSize || fault != nil {
		t.Errorf("got a file of %d bytes: %v", at, fault)
	}
	if err = d.Close(); err != nil {
		t.Error(err)
	}
	if left, fault := os.ReadDir(dir); fault != nil || len(left) != 0 {
		t.Errorf("got files left: %v, %v", left, fault)
	}
	if _, err = d.Before(t.Context(), 100*time.Millisecond); err == nil {
		t.Error("closed disk: got no error")
	}
	if _, err = OpenDisk(filepath.Join(dir, "none")); err == nil {
		t.Error("missing folder: got no error")
	}
}
