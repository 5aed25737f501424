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
		t.Error("what there is not says something")
	}
}

// TestNoise: on a machine without noise a sleep is as long as it was to be.
func TestNoise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := During(t.Context())
		<-time.After(time.Second)
		n := stop()
		if n.Sleep.N != 10 || n.Sleep.Max.Value != 0 || n.Spin.N != 10 {
			t.Errorf("%+v", n)
		}
		if b := Before(t.Context()); b.Sleep.N < 299 {
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
	before, busy := Spent(os.Getpid()).Own, Busy()
	for began := time.Now(); time.Since(began) < 50*time.Millisecond || Spent(os.Getpid()).Own == before || Busy() == busy; {
		if time.Since(began) > 20*time.Second {
			t.Fatal("work costs nothing")
		}
	}
	if Spent(1<<30) != (CPU{}) || RSS(1<<30) != 0 {
		t.Error("a process that there is not spends something")
	}
	if RSS(os.Getpid()) < 1<<20 {
		t.Error("a process without memory")
	}
}

// TestDisk: pages are written until it is enough, around the end of the file too,
// and nothing is left.
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
		t.Errorf("%v, %v", took, err)
	}
	if at, fault := d.file.Seek(0, io.SeekEnd); at != logSize || fault != nil {
		t.Errorf("the file has %d bytes: %v", at, fault)
	}
	if err = d.Close(); err != nil {
		t.Error(err)
	}
	if left, fault := os.ReadDir(dir); fault != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, fault)
	}
	if _, err = d.Before(t.Context(), 100*time.Millisecond); err == nil {
		t.Error("a disk that was closed is written to")
	}
	if _, err = OpenDisk(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that there is not has a disk")
	}
}
