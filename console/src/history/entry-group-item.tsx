import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import type { Entry } from '../api/history-reads.ts';
import { changeTypes } from '../components/change-types.ts';
import { Icon } from '../components/icon.tsx';
import { counted, countText } from '../components/numbers.ts';
import { Name } from '../components/text.tsx';
import { ChangeTypeMark, Time } from '../components/values.tsx';
import { Link } from '../router/router.tsx';
import type { EntryGroup } from './entry-groups.ts';
import { historyOf } from './history-view.ts';
import { Person } from './who.tsx';
import { queryOfCorrelation } from './who-queries.ts';

interface EntryGroupItemProps {
  readonly group: EntryGroup;
  readonly isOpen: boolean;
  readonly onToggle: () => void;
  /** The rows, once the group is open. */
  readonly children: ComponentChildren;
}

/** Entries of one request or transaction under a heading that opens and closes them. */
export function EntryGroupItem({ group: { correlationId, entries }, isOpen, onToggle, children }: EntryGroupItemProps) {
  const id = useId();
  const [first] = entries;
  if (first === undefined || correlationId === undefined) return null;
  return (
    <li class={`entry-group${isOpen ? ' open' : ''}`}>
      <div class="entry-group-head">
        <h3>
          <button type="button" class="entry-group-toggle" aria-expanded={isOpen} aria-controls={id} onClick={onToggle}>
            <Icon name={isOpen ? 'down' : 'next'} size={14} />
            <span class="entry-document">
              <strong>{counted(entries.length, 'change')}</strong> together{' '}
              <span class="muted">
                <Entities entries={entries} />
              </span>
            </span>
            <span class="entry-actor">
              <Actors entries={entries} />
            </span>
            <span class="entry-time">
              <Time at={first.at} detail="clock" />
            </span>
          </button>
        </h3>
        <p class="entry-group-types">
          {changeTypes.map((type) => {
            const count = entries.filter((entry) => entry.type === type).length;
            return count === 0 ? undefined : (
              <span key={type}>
                <ChangeTypeMark type={type} /> <span class="number">{countText(count)}</span>
              </span>
            );
          })}
          <Link to={historyOf(queryOfCorrelation(correlationId))}>Show the whole group</Link>
        </p>
      </div>
      <ol id={id} hidden={!isOpen}>
        {isOpen ? children : undefined}
      </ol>
    </li>
  );
}

/** Entity types that a heading names. */
const maxNamed = 3;

function Entities({ entries }: { readonly entries: readonly Entry[] }) {
  const entities = [...new Set(entries.map(({ entity }) => entity))];
  return (
    <>
      {entities.slice(0, maxNamed).map((entity, index) => (
        <span key={entity}>
          {index === 0 ? '' : ', '}
          <Name text={entity} />
        </span>
      ))}
      {entities.length > maxNamed ? ` and ${countText(entities.length - maxNamed)} more` : ''}
    </>
  );
}

/** The actor of all entries, or how many there are. */
function Actors({ entries }: { readonly entries: readonly Entry[] }) {
  const actors = new Map(entries.map(({ actor, actorId }) => [JSON.stringify([actorId ?? actor]), { actor, actorId }]));
  const [first] = actors.values();
  if (first?.actor === undefined) return null;
  if (actors.size > 1) return <span class="muted">{counted(actors.size, 'actor')}</span>;
  return <Person name={first.actor} id={first.actorId} />;
}
