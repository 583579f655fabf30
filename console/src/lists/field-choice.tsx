import { Name } from '../components/name.tsx';
import { quoted } from '../query-text/quoted.ts';

interface FieldChoiceProps {
  readonly field: string;
  readonly choices: readonly string[];
  readonly filter: string;
  readonly onFilter: (filter: string) => void;
}

/** Chooses a value of a field. The term is written into the filter, in place of the one that it wrote before. */
export function FieldChoice({ field, choices, filter, onFilter }: FieldChoiceProps) {
  const termOf = (choice: string) => `${field}:${quoted(choice)}`;
  const chosen = choices.find((choice) => ` ${filter} `.includes(` ${termOf(choice)} `)) ?? '';
  const choose = (choice: string) => {
    const rest = chosen === '' ? filter : ` ${filter} `.replace(` ${termOf(chosen)} `, ' ').trim();
    onFilter(choice === '' ? rest : `${rest} ${termOf(choice)}`.trim());
  };
  return (
    <label class={`field-choice${chosen === '' ? '' : ' chosen'}`}>
      <Name text={field} />
      <select value={chosen} onChange={(event) => choose(event.currentTarget.value)}>
        <option value="">any</option>
        {choices.map((choice) => (
          <option key={choice} value={choice}>
            {choice}
          </option>
        ))}
      </select>
    </label>
  );
}
