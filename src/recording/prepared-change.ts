import { threaded } from '../core/concurrency/threaded.ts';
import { AnnalsError } from '../core/errors.ts';
import { type Change, changeOfDocuments, type DocumentChange } from './change.ts';
import { PathsTooLargeError } from './path-list.ts';

/** A change of a document that lives in this service, both sides as JSON texts. */
export interface TextChange extends DocumentChange {
  before?: string | undefined;
  after?: string | undefined;
}

/** Maximum bytes of `paths` of a create or an update of a document that lives in this service. */
export const maxOwnPathsBytes = 16 * 1024 * 1024;

/**
 * Does what `changeOfDocuments` does, in a worker thread where the documents are long. Throws payload_too_large for a
 * create or an update whose `paths` would take more than `maxOwnPathsBytes`: each path repeats the keys above it, so the
 * paths of a document of 1 MiB could take gigabytes.
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
