import { AnnalsError } from '../core/errors.ts';
import { threaded } from '../core/fairness/threads.ts';
import { type Change, changeOfDocuments, type DocumentChange } from './change.ts';
import { PathsTooLargeError } from './path-list.ts';

/** A change of a document that this service stores, both sides as JSON text. */
export interface TextChange extends DocumentChange {
  before?: string | undefined;
  after?: string | undefined;
}

/** Maximum bytes of `paths` of a create or an update of a document that this service stores. */
export const maxOwnPathsBytes = 16 * 1024 * 1024;

/**
 * `changeOfDocuments`, in a worker thread for long documents. Throws payload_too_large if `paths` of a create or an
 * update exceeds `maxOwnPathsBytes`: paths repeat the keys above them, so those of 1 MiB could take gigabytes.
 *
 * @example
 * const change = await preparedChange({ type: 'create', entity: 'agent', entityId: 'a', at: now(), actor: 'Jane', after: '{}' });
 */
export const preparedChange = threaded(
  import.meta.url,
  'preparedChange',
  (document: TextChange): Change | 'unchanged' => {
    try {
      return changeOfDocuments(document, document.type === 'delete' ? undefined : maxOwnPathsBytes);
    } catch (error) {
      if (!(error instanceof PathsTooLargeError)) throw error;
      const limit = `${maxOwnPathsBytes / 1024 / 1024} MiB`;
      throw new AnnalsError(
        'payload_too_large',
        `The paths of a change, which repeat the keys above each value, have at most ${limit} together.`,
      );
    }
  },
);
