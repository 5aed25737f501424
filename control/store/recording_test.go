package store_test

import (
	"testing"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/store"
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

// TestJoinedRecording checks that only one joined recording is published, that it is marked as truncated, and that the
// complete recording replaces it.
func TestJoinedRecording(t *testing.T) {
	b := newFixture(t, 10, 1<<20, "sales")
	id := b.order("sales", 1)[0]
	recordings := store.RecordingStore{Store: b.store}
	join := func(key string, want bool) {
		t.Helper()
		if ok, err := recordings.SetJoined(t.Context(), id, key); err != nil || ok != want {
			t.Errorf("%s: %v, %v", key, ok, err)
		}
	}
	b.exec("UPDATE calls SET recording_status = 'finalizing'")
	join("segments/c/joined-2.wav", true)
	join("segments/c/joined-3.wav", false)
	join("segments/c/joined-2.wav", true) // a repeated try
	if c := b.call(id); c.RecordingStatus != control.RecordingReady || c.RecordingKey != "segments/c/joined-2.wav" || !c.Truncated {
		t.Errorf("%s %q, truncated %v", c.RecordingStatus, c.RecordingKey, c.Truncated)
	}
	if err := b.store.SetRecording(t.Context(), id, control.RecordingReady, "recordings/c.wav"); err != nil {
		t.Fatal(err)
	}
	if c := b.call(id); c.RecordingKey != "recordings/c.wav" || c.Truncated {
		t.Errorf("the complete recording: %q, truncated %v", c.RecordingKey, c.Truncated)
	}
	join("segments/c/joined-2.wav", false)
	b.exec("UPDATE calls SET recording_truncated = true")
	if err := b.store.SetRecording(t.Context(), id, control.RecordingReady, "recordings/c.wav"); err != nil {
		t.Fatal(err)
	}
	if c := b.call(id); !c.Truncated {
		t.Error("a recording that a full disk truncated is not marked any more")
	}
	b.exec("UPDATE calls SET recording_status = 'finalizing', recording_key = NULL, erased_at = now()")
	join("segments/c/joined-2.wav", false)
}
