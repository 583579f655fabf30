import type { Actor } from '@annals/client';
import { annals } from '../api/annals.ts';
import { countText } from '../components/numbers.ts';
import { Name } from '../components/text.tsx';
import { Time } from '../components/values.tsx';
import { Person } from '../history/who.tsx';
import { personOf } from '../history/who-queries.ts';
import { ListPage, useList } from '../lists/list-page.tsx';
import { Link } from '../router/router.tsx';

/** Names of a person that a row shows beside the current one. */
const maxFormer = 3;

/** Everybody whose changes have an id, by the beginning of the id or of a name. */
export function PeoplePage() {
  const list = useList<Actor>({
    name: 'people',
    read: ({ q, ...parameters }, signal) =>
      annals().actors.list({ ...parameters, prefix: q === undefined ? undefined : String(q) }, { signal }),
  });
  return (
    <ListPage
      list={list}
      noun="person"
      plural="people"
      title="People"
      lead="Who made changes, by id: a person with two names is one, and two people of one name are two."
      search="Name or id begins with"
      empty={{
        icon: 'actor',
        title: 'No change has the id of an actor',
        text: 'Recorders say who exactly made a change with actorId. By name alone you find actors in the history.',
      }}
      class="wraps"
      keyOf={({ actorId }) => actorId}
      columns={[
        {
          label: 'Person',
          cell: ({ actorId, names }) => (
            <Link to={personOf({ actor: names[0]?.name ?? actorId, actorId })}>
              <Person name={names[0]?.name} id={actorId} />
            </Link>
          ),
        },
        { label: 'Also', name: 'also', class: 'muted', cell: ({ names }) => <Former names={names.slice(1)} /> },
        { label: 'Changes', name: 'Changes', class: 'amount', cell: ({ changes }) => countText(changes) },
        { label: 'Last change', name: 'Last', class: 'nowrap', cell: ({ last }) => <Time at={last} /> },
      ]}
    />
  );
}

function Former({ names }: Pick<Actor, 'names'>) {
  return (
    <>
      {names.slice(0, maxFormer).map(({ name }, index) => (
        <span key={name}>
          {index === 0 ? '' : ', '}
          <Name text={name} />
        </span>
      ))}
      {names.length > maxFormer ? ` and ${countText(names.length - maxFormer)} more` : ''}
    </>
  );
}
