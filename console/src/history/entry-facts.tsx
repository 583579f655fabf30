import type { Entry } from '../api/history-reads.ts';
import { allows, historyAbilities } from '../api/session.ts';
import { JsonTree } from '../components/json-tree.tsx';
import { Name } from '../components/name.tsx';
import { Time } from '../components/time.tsx';
import { recorderText } from '../overview/recorders.ts';
import { Link } from '../router/link.tsx';
import type { Target } from '../router/location.ts';
import { queryOfDocument, queryOfTouching } from './document-queries.ts';
import { historyOf } from './history-view.ts';

/** When, who, and what it belongs to, with links to each. */
export function EntryFacts({
  entry: { at, actor, entity, entityId, name, related, schemaVersion, recordedBy, context },
}: {
  readonly entry: Entry;
}) {
  return (
    <dl class="facts">
      <dt>When</dt>
      <dd>
        <Time at={at} />
      </dd>
      <dt>Who</dt>
      <dd>
        <Link to={{ path: 'actor', parameters: { name: actor } }}>
          <Name text={actor} />
        </Link>
      </dd>
      <dt>Document</dt>
      <dd>
        <Link to={documentOf({ entity, entityId, at })}>
          <Name text={`${entity} ${entityId}`} />
        </Link>
        {name === undefined ? undefined : (
          <span class="muted">
            {' '}
            <Name text={name} />
          </span>
        )}
      </dd>
      {schemaVersion === undefined ? undefined : (
        <>
          <dt>Schema</dt>
          <dd>
            <Name text={schemaVersion} />
          </dd>
        </>
      )}
      {related.length === 0 ? undefined : (
        <>
          <dt>Related</dt>
          <dd class="related">
            {related.map((item) => (
              <span key={`${item.entity} ${item.entityId}`}>
                <Link to={historyOf(queryOfTouching(item))} title="Everything that touched it">
                  <Name text={`${item.entity} ${item.entityId}`} />
                </Link>
              </span>
            ))}
          </dd>
        </>
      )}
      {recordedBy === undefined ? undefined : (
        <>
          <dt>Recorded by</dt>
          <dd>
            {recorderText(recordedBy)}
            {[recordedBy.by, recordedBy.sub, recordedBy.iss].map((by) =>
              by === undefined ? undefined : (
                <span key={by} class="muted">
                  {' '}
                  <Name text={by} />
                </span>
              ),
            )}
          </dd>
        </>
      )}
      {context === undefined ? undefined : (
        <>
          <dt>Context</dt>
          <dd>
            <JsonTree value={context} />
          </dd>
        </>
      )}
    </dl>
  );
}

/** The document as it was made; for who sees no documents its changes. */
function documentOf(entry: Pick<Entry, 'entity' | 'entityId' | 'at'>): Target {
  const { entity, entityId, at } = entry;
  return allows(historyAbilities.documents)
    ? { path: 'document', parameters: { entity, id: entityId, at } }
    : historyOf(queryOfDocument(entry));
}
