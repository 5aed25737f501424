// Package uploads keeps files of rows while somebody looks at them, before a
// campaign is made of them.
package uploads

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"time"

	"github.com/parley-voice/parley/campaigns/desk"
	"github.com/parley-voice/parley/campaigns/sources"
	"github.com/parley-voice/parley/control"
)

// A Bucket keeps files, and opens them or fails with fs.ErrNotExist.
type Bucket interface {
	sources.Bucket
	Open(ctx context.Context, key string) (io.ReadSeekCloser, error)
}

// ErrGone tells that there is no such file, any more or for this organization.
var ErrGone = errors.New("the file is kept no more: upload it again")

// Uploads keeps files, each for an hour at least. It is safe for concurrent use.
type Uploads struct {
	Sources *sources.Sources
	Bucket  Bucket
}

// Keep keeps a file of an organization and returns its id.
func (u *Uploads) Keep(ctx context.Context, orgID string, r io.Reader) (string, error) {
	id := control.NewID("upl_", time.Now())
	if err := u.Sources.Keep(ctx, key(orgID, id), r); err != nil {
		return "", err
	}
	return id, nil
}

func key(orgID, id string) string { return "uploads/" + orgID + "/" + id + ".file" }

// Open returns a file of an organization, on the disk: a spreadsheet is read from
// its end. Done lets go of it.
func (u *Uploads) Open(ctx context.Context, orgID, id string) (f *desk.File, done func(), err error) {
	if !regexp.MustCompile(`^upl_[0-9A-Z]{26}$`).MatchString(id) {
		return nil, nil, ErrGone
	}
	kept, err := u.Bucket.Open(ctx, key(orgID, id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, ErrGone
	}
	if err != nil {
		return nil, nil, fmt.Errorf("upload %s: %w", id, err)
	}
	defer kept.Close()
	tmp, err := os.CreateTemp("", "parley-upload-*")
	if err != nil {
		return nil, nil, err
	}
	done = func() { _ = errors.Join(tmp.Close(), os.Remove(tmp.Name())) } // nothing is lost with it
	n, err := io.Copy(tmp, kept)
	if err != nil {
		done()
		return nil, nil, fmt.Errorf("upload %s: %w", id, err)
	}
	return &desk.File{ReaderAt: tmp, Size: n}, done, nil
}

// Drop deletes a file of which a campaign was made: it is made of it once.
func (u *Uploads) Drop(ctx context.Context, orgID, id string) error {
	return u.Bucket.Delete(ctx, key(orgID, id))
}
