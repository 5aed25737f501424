package dashtest

import (
	"testing"

	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/campaigns/uploads"
)

// NewWithImports starts a dashboard that imports large lists in the background. Nothing is imported until the caller
// runs the imports.
func NewWithImports(t *testing.T) (*Env, *uploads.Imports) {
	t.Helper()
	var imports *uploads.Imports
	h := New(t, func(h *Env) {
		d := h.Dashboard
		imports = &uploads.Imports{
			Pool: h.DB.Pool, Service: d.Campaigns.Service, Log: d.Log,
			Uploads: &uploads.Uploads{Sources: &store.ImportFiles{Pool: h.DB.Pool, Bucket: d.Bucket}, Bucket: d.Bucket},
		}
		d.Imports = imports
	})
	return h, imports
}
