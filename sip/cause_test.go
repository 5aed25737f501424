package sip

import (
	"testing"

	"github.com/parley-voice/parley/media"
)

func TestCause(t *testing.T) {
	for _, row := range []struct {
		status    int
		retry     bool
		abandoned media.Cause
		want      media.Cause
	}{
		{300, false, "", media.Redirected},
		{302, false, "", media.Redirected},
		{400, false, "", media.RouteError},
		{401, false, "", media.AuthFailed},
		{403, false, "", media.Blocked},
		{404, false, "", media.InvalidNumber},
		{407, false, "", media.AuthFailed},
		{408, false, "", media.NoAnswer},
		{410, false, "", media.InvalidNumber},
		{480, false, "", media.NoAnswer},
		{484, false, "", media.InvalidNumber},
		{486, false, "", media.Busy},
		{487, false, "", media.NoAnswer},
		{487, false, media.NoAnswer, media.NoAnswer},
		{487, false, media.Canceled, media.Canceled},
		{486, false, media.NoAnswer, media.Busy},
		{486, false, media.Canceled, media.Canceled},
		{500, false, media.NoAnswer, media.NoAnswer},
		{488, false, "", media.RouteError},
		{500, false, "", media.RouteError},
		{503, false, "", media.RouteError},
		{503, true, "", media.Congestion},
		{504, true, "", media.RouteError},
		{600, false, "", media.Busy},
		{603, false, "", media.Declined},
		{604, false, "", media.InvalidNumber},
		{607, false, "", media.Declined},
		{608, false, "", media.Declined},
		{606, false, "", media.RouteError},
		{699, false, "", media.RouteError},
	} {
		if got := causeForStatus(row.status, row.retry, row.abandoned); got != row.want {
			t.Errorf("%d, retry %v, abandoned with %q: %s, want %s", row.status, row.retry, row.abandoned, got, row.want)
		}
	}
}
