// Settings that make PostgreSQL log every statement, and stand-ins for the Citus functions.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PostgresServer } from '../postgres-server.ts';
import { SHARD_OF_BUCKET } from './citus-rules.ts';

/** Instead of distributing a table, the stand-ins only record its name. */
export const STAND_IN = `
  CREATE TABLE IF NOT EXISTS public.pg_dist_partition (logicalrelid regclass);
  CREATE OR REPLACE FUNCTION public.create_reference_table(relation regclass) RETURNS void LANGUAGE sql
    AS 'INSERT INTO public.pg_dist_partition VALUES (relation)';
  CREATE OR REPLACE FUNCTION public.create_distributed_table(
    relation regclass, key text, colocate_with text DEFAULT NULL, shard_count integer DEFAULT NULL
  ) RETURNS void LANGUAGE sql AS 'INSERT INTO public.pg_dist_partition VALUES (relation)';
  CREATE OR REPLACE FUNCTION public.get_shard_id_for_distribution_column(relation regclass, bucket smallint)
    RETURNS bigint LANGUAGE sql AS 'SELECT ${SHARD_OF_BUCKET}';
  CREATE OR REPLACE FUNCTION public.shard_name(relation regclass, shard bigint) RETURNS text LANGUAGE sql
    AS 'SELECT relation::text';
  CREATE OR REPLACE FUNCTION public.create_distributed_function(
    function regprocedure, distribution_arg_name text, colocate_with text, force_delegation boolean
  ) RETURNS void LANGUAGE sql AS '';
  CREATE OR REPLACE FUNCTION public.lock_shard_metadata(mode integer, shards bigint[]) RETURNS void LANGUAGE sql
    AS 'SELECT pg_advisory_xact_lock_shared(shard) FROM unnest(shards) AS shard';`;

export const LOGGED = {
  fsync: 'off',
  logging_collector: 'on',
  log_directory: 'log',
  log_filename: 'all.log',
  log_rotation_size: '0',
  log_statement: 'all',
  log_line_prefix: '%p ',
};

export const LOG_ENTRY = /^(\d+) LOG: {2}(?:statement|execute (\S+)): (.*)$/s;

export function logOf(server: PostgresServer): readonly string[] {
  return readFileSync(join(server.data, 'log', 'all.log'), 'utf8').split(/\n(?=\d+ )/);
}
