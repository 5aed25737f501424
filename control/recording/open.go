package recording

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/parley-voice/parley/control/recording/s3"
)

// CheckURL returns what is wrong with a bucket's url.
func CheckURL(url string) error {
	switch {
	case strings.HasPrefix(url, s3.Scheme):
		return s3.Check(url)
	case url == "", strings.Contains(strings.TrimPrefix(url, "file://"), "://"):
		return fmt.Errorf("%q is no bucket that there is", url)
	}
	return nil
}

// Open returns the bucket of a url: s3://…, or a folder, with or without file://
// before it. Without a url it is the folder named.
func Open(url, folder string, a s3.Account) (Bucket, error) {
	if strings.HasPrefix(url, s3.Scheme) {
		return s3.Open(url, a)
	}
	return &Folder{Dir: cmp.Or(strings.TrimPrefix(url, "file://"), folder)}, nil
}
