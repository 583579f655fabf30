import { FormField, type FormFieldProps } from './forms.tsx';
import { type Duration, type DurationUnit, durationUnits } from './times.ts';

interface DurationFieldProps extends Omit<FormFieldProps, 'children'> {
  readonly value: Duration;
  readonly onDuration: (duration: Duration) => void;
}

/** A duration: a number and a unit. */
export function DurationField({ value, onDuration, ...field }: DurationFieldProps) {
  return (
    <FormField {...field}>
      {(control) => (
        <div class="duration">
          <input
            {...control}
            class="number"
            inputMode="numeric"
            autocomplete="off"
            value={value.count}
            onInput={(event) => onDuration({ ...value, count: event.currentTarget.value })}
          />
          <select
            aria-label={`${field.label}: unit`}
            value={value.unit}
            onChange={(event) => onDuration({ ...value, unit: event.currentTarget.value as DurationUnit })}
          >
            {Object.keys(durationUnits).map((unit) => (
              <option key={unit} value={unit}>
                {unit}
              </option>
            ))}
          </select>
        </div>
      )}
    </FormField>
  );
}
