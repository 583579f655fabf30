import type { Actor } from '@annals/client';
import type { Requested } from '../api/requests.ts';
import { Card } from '../components/page.tsx';
import { Answer } from '../components/states.tsx';
import { DataTable } from '../components/table.tsx';
import { Name } from '../components/text.tsx';
import { Time } from '../components/values.tsx';
import { atAnyTime } from '../history/document-queries.ts';
import { historyOf } from '../history/history-view.ts';
import { queryOfActor } from '../history/who-queries.ts';
import { writtenText } from '../query-text/edit-query.ts';
import { Link } from '../router/router.tsx';

interface NamesCardProps {
  readonly id: string;
  readonly actor: Requested<Actor | undefined>;
}

/** All names that a person has had, the latest first. */
export function NamesCard({ id, actor }: NamesCardProps) {
  return (
    <Card title="Names" isLoading={actor.isLoading}>
      <Answer of={{ ...actor, value: actor.isCurrent ? { known: actor.value } : undefined }} lines={2}>
        {({ known }) =>
          known === undefined ? (
            <p class="muted">No change by this person is kept.</p>
          ) : (
            <DataTable
              label="Names"
              class="wraps"
              items={known.names}
              keyOf={({ name }) => name}
              columns={[
                {
                  label: 'Name',
                  cell: ({ name }) => (
                    <Link
                      to={historyOf(`${queryOfActor({ id, name })} actor:${writtenText(name)} ${atAnyTime}`)}
                      title="Changes under this name"
                    >
                      <Name text={name} />
                    </Link>
                  ),
                },
                { label: 'First', name: 'First', class: 'nowrap', cell: ({ first }) => <Time at={first} /> },
                { label: 'Last', name: 'Last', class: 'nowrap', cell: ({ last }) => <Time at={last} /> },
              ]}
            />
          )
        }
      </Answer>
    </Card>
  );
}
