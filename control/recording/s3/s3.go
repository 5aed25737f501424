// Package s3 stores recordings in a bucket through the S3 protocol.
package s3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/parley-voice/parley/media"
)

// Scheme is the start of a bucket's URL.
const Scheme = "s3://"

// partSize is the size of a part of a multipart upload, in bytes.
const partSize = 16 << 20

// Account is the access key for a bucket. If ID is empty, the access key comes from the AWS environment variables or,
// without these, from the role of the machine.
type Account struct {
	ID     string
	Secret media.Secret
}

// Bucket stores files whose keys have a common prefix.
type Bucket struct {
	client       *minio.Client
	name, prefix string
}

type location struct {
	endpoint, region, bucket, prefix string
	secure                           bool
}

// parse parses s3://BUCKET/PREFIX?endpoint=URL&region=NAME. Everything except the bucket is optional.
func parse(text string) (location, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "s3" || u.Host == "" || u.User != nil {
		return location{}, errors.New("use s3://BUCKET/PREFIX?endpoint=URL&region=NAME; set the access key in PARLEY_S3_ID and PARLEY_S3_SECRET")
	}
	q := u.Query()
	for k := range q {
		if k != "endpoint" && k != "region" {
			return location{}, fmt.Errorf("parameter %q: accepted are endpoint and region", k)
		}
	}
	p := location{region: cmp.Or(q.Get("region"), "us-east-1"), bucket: u.Host, prefix: strings.Trim(u.Path, "/"), secure: true}
	p.endpoint = "s3." + p.region + ".amazonaws.com"
	if q.Has("endpoint") {
		p.endpoint, p.secure, err = server(q.Get("endpoint"))
	}
	return p, err
}

// server parses the URL of an S3 endpoint. secure reports whether the endpoint uses TLS.
func server(text string) (host string, secure bool, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.User != nil {
		return "", false, errors.New("endpoint: use a URL like https://host:port")
	}
	return u.Host, u.Scheme == "https", nil
}

// Check returns an error if a bucket URL is invalid.
func Check(text string) error {
	_, err := parse(text)
	return err
}

// Open returns the bucket of a URL. It does not check whether the bucket exists.
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

// ErrorCode returns the code of an error response, such as NoSuchBucket, or "".
func ErrorCode(err error) string {
	refusal, _ := errors.AsType[minio.ErrorResponse](err)
	return refusal.Code
}

// Put stores the content of r. An incomplete file is never visible.
func (b *Bucket) Put(ctx context.Context, key string, r io.Reader) error {
	name, err := b.key(key)
	if err != nil {
		return err
	}
	size := int64(-1)
	if file, ok := r.(io.Seeker); ok {
		if size, err = remaining(file); err != nil {
			return fmt.Errorf("store %s: %w", key, err)
		}
	} else if sized, ok := r.(interface{ Size() int64 }); ok {
		size = sized.Size()
	}
	options := minio.PutObjectOptions{ContentType: contentType(key), PartSize: partSize}
	_, err = b.client.PutObject(ctx, b.name, name, onlyReader{r}, size, options)
	if err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	return nil
}

func contentType(key string) string {
	if path.Ext(key) == ".opus" {
		return "audio/ogg"
	}
	return "audio/wav"
}

// remaining returns the number of unread bytes of a file.
func remaining(f io.Seeker) (int64, error) {
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

// onlyReader hides all methods of a reader except Read.
type onlyReader struct{ io.Reader }

// Open opens a file. The error is fs.ErrNotExist if no file has this key. Reads fetch parts of the file until ctx ends.
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

// Delete deletes a file. A missing file is not an error.
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

// File is a file in a bucket. Its size is in bytes.
type File struct {
	Key  string
	Size int64
}

// List returns the files whose keys begin with prefix, in the order of their keys. It ends after an error.
func (b *Bucket) List(ctx context.Context, prefix string) iter.Seq2[File, error] {
	folder := ""
	if b.prefix != "" {
		folder = b.prefix + "/"
	}
	return func(yield func(File, error) bool) {
		listing, cancel := context.WithCancel(ctx) // ends the requests of a list that is not read to its end
		defer cancel()
		for o := range b.client.ListObjectsIter(listing, b.name, minio.ListObjectsOptions{Prefix: folder + prefix, Recursive: true}) {
			if o.Err != nil {
				yield(File{}, fmt.Errorf("list %s: %w", prefix, o.Err))
				return
			}
			if !yield(File{Key: strings.TrimPrefix(o.Key, folder), Size: o.Size}, nil) {
				return
			}
		}
	}
}

// key returns the complete key, including the prefix.
func (b *Bucket) key(key string) (string, error) {
	if !fs.ValidPath(key) || key == "." {
		return "", fmt.Errorf("%q is not a valid key: %w", key, fs.ErrInvalid)
	}
	return path.Join(b.prefix, key), nil
}
