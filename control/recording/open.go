package recording

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/parley-voice/parley/control/recording/s3"
)

// CheckURL returns an error if a bucket URL is invalid.
func CheckURL(url string) error {
	switch {
	case strings.HasPrefix(url, s3.Scheme):
		return s3.Check(url)
	case url == "", strings.Contains(strings.TrimPrefix(url, "file://"), "://"):
		return fmt.Errorf("%q is not a supported bucket URL", url)
	}
	return nil
}

// Open returns the bucket of a URL. The URL is s3://… or the path of a folder, with or without file://. If url is
// empty, the bucket is the folder named folder.
func Open(url, folder string, a s3.Account) (Bucket, error) {
	if strings.HasPrefix(url, s3.Scheme) {
		return s3.Open(url, a)
	}
	return &Folder{Dir: cmp.Or(strings.TrimPrefix(url, "file://"), folder)}, nil
}
