// The statements by which a copy enters rows as they were, many at a time.

import {
  ANSWER,
  ANSWER_TYPES,
  CYCLE,
  CYCLE_TYPES,
  insert,
  KEY,
  KEY_TYPES,
  POSTING,
  POSTING_TYPES,
} from './statements.ts';

export const INSERTS = {
  cycle: insertOf('cycles', `${KEY}, ${CYCLE}`, [...KEY_TYPES, ...CYCLE_TYPES]),
  posting: insertOf('postings', `${KEY}, ${POSTING}`, [...KEY_TYPES, ...POSTING_TYPES]),
  answer: insertOf('answers', `${KEY}, ${ANSWER}`, [...KEY_TYPES, ...ANSWER_TYPES]),
  'end-user': insertOf('end_users', `${KEY}, chain`, [...KEY_TYPES, 'text']),
};

function insertOf(table: string, columns: string, types: readonly string[]) {
  return { text: insert(table, columns, types), types };
}
