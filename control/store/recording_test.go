package store_test

import (
	"testing"

	"github.com/parley-voice/parley/control"
)

// TestReadyRecordingStays checks that a recording that is stored cannot be marked as failed.
func TestReadyRecordingStays(t *testing.T) {
	b := newFixture(t, 10, 1<<20, "sales")
	id := b.order("sales", 1)[0]
	recorded := func(s control.RecordingStatus, key string) control.Call {
		t.Helper()
		if err := b.store.SetRecording(t.Context(), id, s, key); err != nil {
			t.Fatal(err)
		}
		return b.call(id)
	}
	b.exec("UPDATE calls SET recording_status = 'finalizing'")
	if c := recorded(control.RecordingFailed, ""); c.RecordingStatus != control.RecordingFailed {
		t.Errorf("a lost recording is %s", c.RecordingStatus)
	}
	if c := recorded(control.RecordingReady, "k"); c.RecordingStatus != control.RecordingReady || c.RecordingKey != "k" {
		t.Errorf("one that turned up is %s %q", c.RecordingStatus, c.RecordingKey)
	}
	if c := recorded(control.RecordingFailed, ""); c.RecordingStatus != control.RecordingReady || c.RecordingKey != "k" {
		t.Errorf("one that is stored became %s %q", c.RecordingStatus, c.RecordingKey)
	}
}
