// Package s3 keeps recordings in a bucket that is spoken to by the S3 protocol.
package s3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/parley-voice/parley/media"
)

// Scheme begins the url of a bucket.
const Scheme = "s3://"

// partSize is what a long recording is sent in parts of: bytes.
const partSize = 16 << 20

// An Account is who may use the bucket. Without an id the environment is asked as
// AWS's own tools do, and then the machine's role.
type Account struct {
	ID     string
	Secret media.Secret
}

// A Bucket keeps files under a prefix.
type Bucket struct {
	client       *minio.Client
	name, prefix string
}

// A place is what a url says.
type place struct {
	endpoint, region, bucket, prefix string
	secure                           bool
}

// parse reads s3://BUCKET/PREFIX?endpoint=URL&region=NAME; all but the bucket may
// be left out.
func parse(text string) (place, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "s3" || u.Host == "" || u.User != nil {
		return place{}, errors.New("use s3://BUCKET/PREFIX?endpoint=URL&region=NAME; keys are settings of their own")
	}
	q := u.Query()
	for k := range q {
		if k != "endpoint" && k != "region" {
			return place{}, fmt.Errorf("%q: use endpoint and region", k)
		}
	}
	p := place{region: cmp.Or(q.Get("region"), "us-east-1"), bucket: u.Host, prefix: strings.Trim(u.Path, "/"), secure: true}
	p.endpoint = "s3." + p.region + ".amazonaws.com"
	if q.Has("endpoint") {
		p.endpoint, p.secure, err = server(q.Get("endpoint"))
	}
	return p, err
}

// server reads the address of a server.
func server(text string) (host string, secure bool, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.User != nil {
		return "", false, errors.New("endpoint is like https://host:port")
	}
	return u.Host, u.Scheme == "https", nil
}

// Check returns what is wrong with a bucket's url.
func Check(text string) error {
	_, err := parse(text)
	return err
}

// Open returns the bucket of a url. It does not ask whether there is one.
func Open(text string, a Account) (*Bucket, error) {
	p, err := parse(text)
	if err != nil {
		return nil, err
	}
	keys := credentials.NewStaticV4(a.ID, string(a.Secret), "")
	if a.ID == "" {
		keys = credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{},
		})
	}
	transport, err := minio.DefaultTransport(p.secure)
	if err != nil {
		return nil, fmt.Errorf("s3: %w", err)
	}
	transport.ResponseHeaderTimeout = 30 * time.Second
	client, err := minio.New(p.endpoint, &minio.Options{Creds: keys, Secure: p.secure, Region: p.region, Transport: transport, MaxRetries: 3})
	if err != nil {
		return nil, fmt.Errorf("s3: %w", err)
	}
	return &Bucket{client: client, name: p.bucket, prefix: p.prefix}, nil
}

// Put stores what r yields. Nobody ever sees a part of it.
func (b *Bucket) Put(ctx context.Context, key string, r io.Reader) error {
	name, err := b.key(key)
	if err != nil {
		return err
	}
	size := int64(-1)
	if file, ok := r.(io.Seeker); ok {
		if size, err = left(file); err != nil {
			return fmt.Errorf("store %s: %w", key, err)
		}
	}
	_, err = b.client.PutObject(ctx, b.name, name, onlyReader{r}, size, minio.PutObjectOptions{ContentType: "audio/wav", PartSize: partSize})
	if err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	return nil
}

// left is how many bytes of a file are still to be read.
func left(f io.Seeker) (int64, error) {
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	_, err = f.Seek(at, io.SeekStart)
	return end - at, err
}

// An onlyReader is read from where it is: nothing else of it is made use of.
type onlyReader struct{ io.Reader }

// Open fails with fs.ErrNotExist where there is nothing under the key. Parts are
// fetched as they are read, until ctx ends.
func (b *Bucket) Open(ctx context.Context, key string) (io.ReadSeekCloser, error) {
	name, err := b.key(key)
	if err != nil {
		return nil, err
	}
	o, err := b.client.GetObject(ctx, b.name, name, minio.GetObjectOptions{})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", key, err)
	}
	if _, err = o.Stat(); err != nil {
		if minio.ToErrorResponse(err).StatusCode == http.StatusNotFound {
			err = fs.ErrNotExist
		}
		return nil, errors.Join(fmt.Errorf("open %s: %w", key, err), o.Close())
	}
	return o, nil
}

// Delete is no error where there is nothing.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	name, err := b.key(key)
	if err != nil {
		return err
	}
	if err = b.client.RemoveObject(ctx, b.name, name, minio.RemoveObjectOptions{}); err != nil {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	return nil
}

// key keeps keys under the prefix.
func (b *Bucket) key(key string) (string, error) {
	if !fs.ValidPath(key) || key == "." {
		return "", fmt.Errorf("%q is no key: %w", key, fs.ErrInvalid)
	}
	return path.Join(b.prefix, key), nil
}
