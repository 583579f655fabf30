import { countEntries } from '../api/history-reads.ts';
import { useRequest } from '../api/requests.ts';
import { counted } from '../components/numbers.ts';
import { Name } from '../components/text.tsx';
import { Link } from '../router/router.tsx';
import { historyOf } from './history-view.ts';
import {
  addressOf,
  type Named,
  personOf,
  queryOfAddress,
  queryOfCorrelation,
  queryOfOnBehalfOf,
} from './who-queries.ts';
import './who.css';

/** Who made a change, for whom and from which address, as far as the entry says so. Each part leads to its changes. */
export function Who({ entry }: { readonly entry: Named }) {
  const { actor, actorId, onBehalfOf } = entry;
  const address = addressOf(entry);
  return (
    <>
      {actor === undefined ? undefined : (
        <Link to={personOf({ actor, actorId })}>
          <Person name={actor} id={actorId} />
        </Link>
      )}
      {onBehalfOf === undefined ? undefined : (
        <>
          <span class="muted"> on behalf of </span>
          <Link to={historyOf(queryOfOnBehalfOf(onBehalfOf))}>
            <Person name={onBehalfOf.name} id={onBehalfOf.id} />
          </Link>
        </>
      )}
      {address === undefined ? undefined : (
        <>
          <span class="muted"> · </span>
          <Link to={historyOf(queryOfAddress(address))} title="All changes from this address">
            <Name text={address} />
          </Link>
        </>
      )}
    </>
  );
}

interface PersonProps {
  readonly name: string | undefined;
  readonly id: string | undefined;
}

/** `Jane Doe (u-17)`; the name or the id alone where the other is not known, or is the same. */
export function Person({ name, id }: PersonProps) {
  if (name === undefined || name === id) return <Name text={id ?? name ?? ''} />;
  if (id === undefined) return <Name text={name} />;
  return (
    <>
      <Name text={name} />{' '}
      <span class="person-id">
        (<Name text={id} />)
      </span>
    </>
  );
}

/** How many other changes belong to the same request or transaction, once they are counted; nothing if there is none. */
export function OtherChanges({ correlationId }: { readonly correlationId: string }) {
  const q = queryOfCorrelation(correlationId);
  const { value } = useRequest(q, (signal) => countEntries(q, signal));
  if (value === undefined || value < 2) return null;
  return (
    <>
      <span class="muted"> · with </span>
      <Link to={historyOf(q)}>{counted(value - 1, 'other change')}</Link>
    </>
  );
}
