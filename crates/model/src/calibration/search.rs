//! Local refinement: a pattern search over a few positive parameters.
//!
//! Each parameter in turn is multiplied and divided by a factor; what helps is kept, and when nothing helps the
//! factors shrink towards 1. No gradient is needed, which a simulated error does not have: it is a
//! step function of its parameters at small scale. (R. Hooke and T. A. Jeeves, "Direct search solution
//! of numerical and statistical problems", J. ACM 8 (1961), with multiplicative steps.)

/// A parameter: where it is, how far it may go, and how far the first step is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameter {
    pub(super) value: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    /// The first factor, above 1.
    pub(super) factor: f64,
}

/// Rounds over all parameters at most.
const ROUNDS_MAX: usize = 40;
/// Factors this close to 1 end the search.
const FACTOR_MIN: f64 = 1.01;

/// Improves the parameters until no step helps; returns them and their error.
pub(super) fn refine(
    mut parameters: Vec<Parameter>,
    error_of: impl Fn(&[f64]) -> f64,
) -> (Vec<f64>, f64) {
    let mut values: Vec<f64> = parameters.iter().map(|parameter| parameter.value).collect();
    let mut best = error_of(&values);
    for _ in 0..ROUNDS_MAX {
        let mut improved = false;
        for i in 0..parameters.len() {
            let Parameter { min, max, factor, .. } = parameters[i];
            for candidate in [values[i] * factor, values[i] / factor] {
                let candidate = candidate.clamp(min, max);
                let former = std::mem::replace(&mut values[i], candidate);
                let error = error_of(&values);
                if error < best {
                    best = error;
                    improved = true;
                    break;
                }
                values[i] = former;
            }
        }
        if !improved {
            parameters.iter_mut().for_each(|p| p.factor = p.factor.sqrt());
            if parameters.iter().all(|p| p.factor < FACTOR_MIN) {
                break;
            }
        }
    }
    (values, best)
}

#[cfg(test)]
mod tests {
    use super::{Parameter, refine};

    #[test]
    fn a_valley_is_found_from_far_away() {
        let start = |value| Parameter { value, min: 0.01, max: 1e6, factor: 2.0 };
        let error = |v: &[f64]| (v[0] / 37.0).ln().abs() + (v[1] / 0.2).ln().abs();
        let (values, error) = refine(vec![start(1000.0), start(5.0)], error);
        assert!(error < 0.03, "{values:?}");
    }

    #[test]
    fn bounds_hold() {
        let start = Parameter { value: 5.0, min: 1.0, max: 8.0, factor: 1.5 };
        let (values, _) = refine(vec![start], |v| 1.0 / v[0]);
        assert_eq!(values, [8.0]);
    }
}
