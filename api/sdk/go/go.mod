module github.com/parley-voice/parley/api/sdk/go

go 1.23
