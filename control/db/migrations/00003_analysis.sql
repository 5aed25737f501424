-- +goose Up
-- Why a call could not be analysed; empty where it was, or was not to be.
ALTER TABLE calls ADD COLUMN analysis_error text NOT NULL DEFAULT '';
