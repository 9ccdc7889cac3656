-- What was revoked is never enabled again, whoever writes: a replica of an older program knows of no revocations.

-- +goose Up
UPDATE versions SET enabled = 0 WHERE revoked_at <> 0;
ALTER TABLE versions ADD CONSTRAINT versions_revoked CHECK (revoked_at = 0 OR enabled = 0);
