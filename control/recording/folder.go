// Package recording uploads recordings of calls that have ended from their node to the bucket.
package recording

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/parley-voice/parley/control/recording/s3"
	"github.com/parley-voice/parley/media/recorder"
)

// Bucket stores files under keys like "recordings/call_….wav".
type Bucket interface {
	// Put stores the content of r. An incomplete file is never visible.
	Put(ctx context.Context, key string, r io.Reader) error
	// Open returns an error that is fs.ErrNotExist if there is no file with this key.
	Open(ctx context.Context, key string) (io.ReadSeekCloser, error)
	// Delete deletes a file. A missing file is not an error.
	Delete(ctx context.Context, key string) error
	// List returns the files whose keys begin with prefix, in the order of their keys. It ends after an error.
	List(ctx context.Context, prefix string) iter.Seq2[File, error]
}

// File is a file in a bucket.
type File = s3.File

// Folder is a Bucket in a local folder.
type Folder struct{ Dir string }

// Put implements Bucket. It returns after the file is on disk.
func (f *Folder) Put(ctx context.Context, key string, r io.Reader) (err error) {
	name, err := f.name(key)
	if err != nil {
		return err
	}
	if err = os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(name), ".part-*")
	if err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	defer func() {
		if err != nil {
			_ = tmp.Close()
			_ = os.Remove(tmp.Name())
			err = fmt.Errorf("store %s: %w", key, err)
		}
	}()
	if _, err := io.Copy(tmp, contextReader{ctx.Err, r}); err != nil {
		return err
	}
	if err := tmp.Sync(); err != nil {
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), name); err != nil {
		return err
	}
	return recorder.SyncDir(filepath.Dir(name))
}

// Link gives the file of a key a second key. The files share their bytes, and each can be deleted without the other: Put
// replaces files, and nothing writes into them. Some file systems have no links.
func (f *Folder) Link(key, second string) error {
	from, err := f.name(key)
	if err != nil {
		return err
	}
	to, err := f.name(second)
	if err != nil {
		return err
	}
	if err = os.Link(from, to); err != nil {
		return fmt.Errorf("link %s: %w", second, err)
	}
	return nil
}

// Open implements Bucket.
func (f *Folder) Open(_ context.Context, key string) (io.ReadSeekCloser, error) {
	name, err := f.name(key)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(name) //nolint:gosec // name keeps it in the folder
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", key, err)
	}
	return file, nil
}

// Path returns the name of a key's file. Callers use it to map the file into memory.
func (f *Folder) Path(key string) (string, error) { return f.name(key) }

// Delete implements Bucket.
func (f *Folder) Delete(_ context.Context, key string) error {
	name, err := f.name(key)
	if err != nil {
		return err
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	return nil
}

// List implements Bucket. A prefix must end in a slash or be empty.
func (f *Folder) List(ctx context.Context, prefix string) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		root := filepath.Join(f.Dir, filepath.FromSlash(prefix))
		err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err = errors.Join(err, ctx.Err()); err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".part-") {
				return err
			}
			info, err := d.Info()
			if errors.Is(err, fs.ErrNotExist) { // deleted since
				return nil
			}
			if err != nil {
				return err
			}
			key, err := filepath.Rel(f.Dir, name)
			if err == nil && !yield(File{Key: filepath.ToSlash(key), Size: info.Size()}, nil) {
				return fs.SkipAll
			}
			return err
		})
		if err != nil {
			yield(File{}, fmt.Errorf("list %s: %w", prefix, err))
		}
	}
}

// name returns the file name of a key. It rejects keys that lead out of the folder.
func (f *Folder) name(key string) (string, error) {
	if !fs.ValidPath(key) || key == "." {
		return "", fmt.Errorf("%q is not a valid key: %w", key, fs.ErrInvalid)
	}
	return filepath.Join(f.Dir, filepath.FromSlash(key)), nil
}

// contextReader is a reader that fails after its context has ended.
type contextReader struct {
	over func() error
	r    io.Reader
}

// Read implements io.Reader.
func (c contextReader) Read(b []byte) (int, error) {
	if err := c.over(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}
