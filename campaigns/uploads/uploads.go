// Package uploads stores uploaded files while an operator maps their columns, and creates
// campaigns from them in the background.
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

	"github.com/parley-voice/parley/campaigns/service"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
)

// A Bucket stores files. Open returns fs.ErrNotExist for a missing key.
type Bucket interface {
	store.Bucket
	Open(ctx context.Context, key string) (io.ReadSeekCloser, error)
}

// ErrGone is returned for a file that does not exist, expired, or belongs to another
// organization.
var ErrGone = errors.New("the uploaded file expired: upload it again")

// Uploads stores files for at least an hour. It is safe for concurrent use.
type Uploads struct {
	Sources *store.ImportFiles
	Bucket  Bucket
}

// Keep stores a file of an organization and returns its id.
func (u *Uploads) Keep(ctx context.Context, orgID string, r io.Reader) (string, error) {
	id := control.NewID("upl_", time.Now())
	if err := u.Sources.Put(ctx, key(orgID, id), r); err != nil {
		return "", err
	}
	return id, nil
}

func key(orgID, id string) string { return "uploads/" + orgID + "/" + id + ".file" }

// Open returns a local copy of a file, because spreadsheets are read from their end.
// The caller calls done to delete the copy.
func (u *Uploads) Open(ctx context.Context, orgID, id string) (f *service.File, done func(), err error) {
	if !regexp.MustCompile(`^upl_[0-9A-Z]{26}$`).MatchString(id) {
		return nil, nil, ErrGone
	}
	from, err := u.Bucket.Open(ctx, key(orgID, id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, ErrGone
	}
	if err != nil {
		return nil, nil, fmt.Errorf("upload %s: %w", id, err)
	}
	defer from.Close()
	tmp, err := os.CreateTemp("", "parley-upload-*")
	if err != nil {
		return nil, nil, err
	}
	done = func() { _ = errors.Join(tmp.Close(), os.Remove(tmp.Name())) } // the upload itself stays
	n, err := io.Copy(tmp, from)
	if err != nil {
		done()
		return nil, nil, fmt.Errorf("upload %s: %w", id, err)
	}
	return &service.File{ReaderAt: tmp, Size: n}, done, nil
}

// Drop deletes a file after a campaign was created from it.
func (u *Uploads) Drop(ctx context.Context, orgID, id string) error {
	return u.Bucket.Delete(ctx, key(orgID, id))
}
