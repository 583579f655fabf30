import { answerRequests } from '../../core/concurrency/thread-worker.ts';
import type { Mapping } from '../../recording/mapping/mapping.ts';
import { mappingOfCheckedText } from '../../recording/mapping/mapping-of-file.ts';
import { Refusal, type RefusalKind } from './limits.ts';
import { type BodyRequest, type ReadBody, readBody } from './read-body.ts';

/** The mapping comes as its file's text, which was checked before. */
export type ThreadBodyRequest = Omit<BodyRequest, 'mapping'> & { mapping: string | undefined };

export type ThreadBodyReply = ReadBody | { refusal: RefusalKind; message: string };

let mappingText: string | undefined;
let mapping: Mapping | undefined;

answerRequests((request: ThreadBodyRequest): ThreadBodyReply => {
  if (request.mapping !== mappingText) {
    mappingText = request.mapping;
    mapping = mappingText === undefined ? undefined : mappingOfCheckedText(mappingText);
  }
  try {
    return readBody({ ...request, mapping });
  } catch (error) {
    if (error instanceof Refusal) return { refusal: error.kind, message: error.message };
    throw error;
  }
});
